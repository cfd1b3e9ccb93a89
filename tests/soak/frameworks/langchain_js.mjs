// /// script
// dependencies = [
//     "langchain@1.5.14",
//     "@langchain/core@1.4.0",
//     "@langchain/langgraph@1.7.3",
//     "@langchain/openai@1.5.8",
//     "@arizeai/openinference-instrumentation-langchain@4.1.1",
//     "@langfuse/langchain@5.11.1",
//     "@langfuse/otel@5.11.1",
//     "@opentelemetry/api@1.9.1",
//     "@opentelemetry/exporter-trace-otlp-proto@0.219.0",
//     "@opentelemetry/sdk-trace-node@2.8.0",
//     "@traceloop/instrumentation-langchain@0.27.0",
//     "zod@4.6.7",
// ]
// [tool.soak]
// instrumentations = ["openinference", "openllmetry", "langfuse"]
// helpers = ["tool"]
// patterns = ["given-up", "nodes", "side-by-side"]
// counts-itself = ["openinference", "openllmetry", "langfuse"]
// ends-broken-streams = true
// ///
// An agent of LangChain.js, which is a graph of LangGraph.js.
import { createRequire } from 'node:module';

import { MAX_STEPS, MODEL, instrumentations, logged, main, signalOf, system, tools, zodSchema } from './agent_program.mjs';

const require = createRequire(import.meta.url);
const { CallbackHandler } = require('@langfuse/langchain');
const { LangfuseSpanProcessor } = require('@langfuse/otel');
const { createAgent, tool } = require('langchain');
const { END, MessagesAnnotation, START, StateGraph } = require('@langchain/langgraph');
const { ChatOpenAI } = require('@langchain/openai');
const { awaitAllCallbacks } = require('@langchain/core/callbacks/promises');
const { z } = require('zod');

// The table by which it counts tokens itself is on the network: without it, it estimates them.
const { fetch } = globalThis;
globalThis.fetch = (url, ...more) => (String(url).includes('tiktoken') ? new Response(null, { status: 404 }) : fetch(url, ...more));

const prepare = (tracerProvider) => {
  const callbacks = require('@langchain/core/callbacks/manager');
  if (instrumentations.includes('openinference')) {
    const { LangChainInstrumentation } = require('@arizeai/openinference-instrumentation-langchain');
    new LangChainInstrumentation({ tracerProvider }).manuallyInstrument(callbacks);
  }
  if (instrumentations.includes('openllmetry')) {
    const { LangChainInstrumentation } = require('@traceloop/instrumentation-langchain');
    const instrumentation = new LangChainInstrumentation();
    instrumentation.setTracerProvider(tracerProvider);
    instrumentation.manuallyInstrument({ callbackManagerModule: callbacks });
  }
};

const run = async (job) => {
  const llm = new ChatOpenAI({
    model: MODEL,
    apiKey: 'none',
    configuration: { baseURL: job.url },
    useResponsesApi: false,
    streaming: job.stream,
    streamUsage: job.count_stream,
    maxRetries: 1,
  });
  const all = Object.entries(tools).map(([name, { description, parameters, run }]) =>
    tool(run, { name, description, schema: zodSchema(z, parameters) }),
  );
  const settings = { recursionLimit: 4 * MAX_STEPS, signal: signalOf(job), callbacks: instrumentations.includes('langfuse') ? [new CallbackHandler()] : [] };
  const ask = async (name, tools, messages) =>
    (await createAgent({ model: llm, tools, systemPrompt: system(name), name }).invoke({ messages }, settings)).messages;
  const researcher = tool(
    logged('ask_researcher', async ({ question }) => {
      const agent = createAgent({ model: llm, tools: all.slice(0, 2), systemPrompt: system('researcher'), name: 'researcher' });
      const { messages } = await agent.invoke({ messages: [{ role: 'user', content: question }] }, { recursionLimit: 4 * MAX_STEPS });
      return messages.at(-1).text;
    }),
    { name: 'ask_researcher', description: 'Ask the researcher.', schema: z.object({ question: z.string() }) },
  );
  if (['nodes', 'side-by-side'].includes(job.helper)) {
    const beside = job.helper === 'side-by-side';
    const node = (name, works) => createAgent({ model: llm, tools: all, systemPrompt: system(name, works), name });
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('assistant', node('assistant', 'alone').graph)
      .addNode('writer', node('writer', beside ? 'beside assistant' : 'alone').graph)
      .addEdge(START, 'assistant')
      .addEdge(beside ? START : 'assistant', 'writer')
      .addEdge('writer', END);
    const said = await graph.compile().invoke({ messages: [{ role: 'user', content: job.turns[0] }] }, settings);
    return said.messages.at(-1).text;
  }
  let messages = [];
  for (const content of job.turns) {
    const given = [...messages, { role: 'user', content }];
    messages = await ask('assistant', job.helper === 'tool' ? [...all, researcher] : all, given);
  }
  return messages.at(-1).text;
};

const processor = instrumentations.includes('langfuse') ? (exporter) => new LangfuseSpanProcessor({ exporter }) : undefined;
process.env.LANGFUSE_PUBLIC_KEY = process.env.LANGFUSE_SECRET_KEY = 'none';
// Callbacks run later, in the context of whichever run they were queued in first: one run at a time.
const alone = async (job) => {
  try {
    return await run(job);
  } finally {
    await awaitAllCallbacks();
  }
};
await main(alone, { processor, prepare });
process.exit();

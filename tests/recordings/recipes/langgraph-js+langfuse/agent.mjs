import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { createSupervisor } from '@langchain/langgraph-supervisor';
import { ChatOpenAI } from '@langchain/openai';
import { CallbackHandler } from '@langfuse/langchain';
import { LangfuseSpanProcessor } from '@langfuse/otel';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { createAgent, tool } from 'langchain';
import { z } from 'zod';
import { QUESTION, SCENARIO, agentAsTool, run, tools, zodSchema } from './lab.mjs';

const processor = new LangfuseSpanProcessor({ exporter: new OTLPTraceExporter() });
new NodeTracerProvider({ spanProcessors: [processor] }).register();
const callbacks = [new CallbackHandler()];
const llm = new ChatOpenAI({ model: 'gpt-4o', useResponsesApi: false });
const all = Object.entries(tools).map(([name, { description, parameters, run }]) =>
  tool(run, { name, description, schema: zodSchema(z, parameters) }),
);
const last = ({ messages }) => messages.at(-1).content;
const agent = (name, tools) => createAgent({ model: llm, tools, systemPrompt: `You are the ${name}.`, name });
const asked = (question) => ({ messages: [{ role: 'user', content: question }] });
const researcher = tool(agentAsTool(async ({ query }) => last(await agent('researcher', all).invoke(asked(query)))), {
  name: 'researcher',
  description: 'Finds things out',
  schema: z.object({ query: z.string() }),
});

await run(async () => {
  if (SCENARIO === 'handoff') {
    const member = createReactAgent({ llm, tools: all, name: 'researcher', prompt: 'You are the researcher.' });
    const team = createSupervisor({ agents: [member], llm, prompt: 'You are the assistant.', supervisorName: 'assistant' });
    return last(await team.compile({ name: 'team' }).invoke(asked(QUESTION), { callbacks }));
  }
  const root = agent('assistant', SCENARIO === 'delegation' ? [researcher] : all);
  if (SCENARIO === 'streaming') {
    let state;
    for await (const part of await root.stream(asked(QUESTION), { streamMode: ['values', 'messages'], callbacks })) {
      state = part[0] === 'values' ? part[1] : state;
    }
    return last(state);
  }
  return last(await root.invoke(asked(QUESTION), { callbacks }));
}, () => processor.shutdown());
process.exit();

// /// script
// dependencies = [
//     "@openai/agents@0.20.0",
//     "@arizeai/openinference-instrumentation-openai-agents@0.2.15",
//     "@opentelemetry/api@1.9.1",
//     "@opentelemetry/exporter-trace-otlp-proto@0.219.0",
//     "@opentelemetry/sdk-trace-node@2.8.0",
//     "openlit@1.15.0",
//     "zod@4.6.7",
// ]
// [tool.soak]
// instrumentations = ["openinference", "openlit"]
// helpers = ["handoff", "tool"]
// patterns = ["given-up", "parallel", "check", "answer"]
// pseudo-tools = ["transfer_to_researcher"]
// ends-broken-streams = true
// ///
// Agents of the OpenAI Agents SDK for JavaScript, over Responses and over Chat Completions.
import { createRequire } from 'node:module';

import { MODEL, instrumentations, logged, main, makeRuns, namesRun, signalOf, system, tools, zodSchema } from './agent_program.mjs';

// OpenLIT instruments what is loaded by `require`, and after it.
const require = createRequire(import.meta.url);
const { trace } = require('@opentelemetry/api');
const { z } = require('zod');
let sdk;

const openlit = () => {
  require('openlit').default.init({ disableMetrics: true, disableEvents: true, pricingJson: {} });
  sdk = require('@openai/agents');
  // Its provider is its own, and takes no processor of others.
  const provider = trace.getTracerProvider().getDelegate();
  provider._activeSpanProcessor._spanProcessors.unshift(namesRun);
  return provider;
};

const openinference = (tracerProvider) => {
  sdk = require('@openai/agents');
  const { OpenAIAgentsInstrumentation } = require('@arizeai/openinference-instrumentation-openai-agents');
  new OpenAIAgentsInstrumentation({ tracerProvider }).manuallyInstrument(sdk);
};

const run = async (job) => {
  const { Agent, OpenAIProvider, Runner, tool } = sdk;
  const modelProvider = new OpenAIProvider({ baseURL: job.url, apiKey: 'none', useResponses: job.count_stream });
  const runner = new Runner({ modelProvider });
  const all = Object.entries(tools).map(([name, { description, parameters, run }]) =>
    tool({ name, description, parameters: zodSchema(z, parameters), execute: run }),
  );
  const agent = (name, { works, ...more }) => new Agent({ name, instructions: system(name, works), model: MODEL, ...more });
  const researcher = agent('researcher', { tools: all.slice(0, 2) });
  const asked = tool({
    name: 'ask_researcher',
    description: 'Ask the researcher.',
    parameters: z.object({ question: z.string() }),
    execute: logged('ask_researcher', async ({ question }) => String((await runner.run(researcher, question)).finalOutput)),
  });
  const checker = agent('checker', { works: 'within assistant' });
  const check = async ({ agentOutput }) => {
    const said = await runner.run(checker, String(agentOutput));
    return { outputInfo: said.finalOutput, tripwireTriggered: false };
  };
  let at = agent('assistant', {
    ...(job.helper === 'check' && { outputGuardrails: [{ name: 'check', execute: check }] }),
    ...(job.helper === 'answer' && { outputType: z.object({ answer: z.number() }) }),
    tools: job.helper === 'tool' ? [...all, asked] : all,
    handoffs: job.helper === 'handoff' ? [researcher] : [],
  });
  if (job.helper === 'parallel') {
    const both = [at, agent('writer', { works: 'beside assistant', tools: all })];
    return String((await Promise.all(both.map((one) => runner.run(one, job.turns[0])))).at(-1).finalOutput);
  }
  let items = [];
  let said = null;
  for (const content of job.turns) {
    const result = await runner.run(at, [...items, { role: 'user', content }], { stream: job.stream, signal: signalOf(job) });
    await result.completed;
    [items, at, said] = [result.history, result.lastAgent, result.finalOutput];
  }
  return typeof said === 'string' ? said : JSON.stringify(said);
};

if (instrumentations.includes('openlit')) {
  const provider = openlit();
  await makeRuns(run, 3);
  await provider.shutdown();
} else {
  await main(run, { prepare: openinference, together: 3 });
}
process.exit();

// /// script
// dependencies = [
//     "@voltagent/core@2.10.0",
//     "@ai-sdk/openai@3.0.141",
//     "@opentelemetry/exporter-trace-otlp-proto@0.203.0",
//     "@opentelemetry/sdk-trace-base@2.12.1",
//     "@opentelemetry/sdk-trace-node@2.12.0",
//     "ai@6.0.326",
//     "zod@4.6.7",
// ]
// [tool.soak]
// instrumentations = ["native"]
// helpers = ["tool"]
// patterns = ["given-up", "chain", "parallel"]
// ///
// An agent of VoltAgent.
import { createOpenAI } from '@ai-sdk/openai';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { Agent, VoltAgentObservability, createTool } from '@voltagent/core';
import { z } from 'zod';

import { MAX_STEPS, MODEL, logged, makeRuns, namesRun, signalOf, system, tools, zodSchema } from './agent_program.mjs';

const observability = new VoltAgentObservability({
  serviceName: 'soak',
  spanProcessors: [namesRun, new BatchSpanProcessor(new OTLPTraceExporter())],
});
const made = (name, description, parameters, execute) => createTool({ name, description, parameters, execute });
const all = Object.entries(tools).map(([name, { description, parameters, run }]) =>
  made(name, description, zodSchema(z, parameters), (given) => run(given)),
);

const run = async (job) => {
  const model = createOpenAI({ baseURL: job.url, apiKey: 'none' }).chat(MODEL);
  const agent = (name, tools, works) =>
    new Agent({ name, instructions: system(name, works), model, observability, tools, maxSteps: MAX_STEPS, memory: false });
  const asking = logged('ask_researcher', async ({ question }) => (await agent('researcher', all.slice(0, 2)).generateText(question)).text);
  const researcher = made('ask_researcher', 'Ask the researcher.', z.object({ question: z.string() }), (given) => asking(given));
  const asked = agent('assistant', job.helper === 'tool' ? [...all, researcher] : all);
  if (['chain', 'parallel'].includes(job.helper)) {
    const writer = agent('writer', all, job.helper === 'chain' ? 'alone' : 'beside assistant');
    const first = asked.generateText(job.turns[0]);
    if (job.helper === 'chain') await first;
    return (await Promise.all([first, writer.generateText(job.turns[0])])).at(-1).text;
  }
  const messages = [];
  const given = { abortSignal: signalOf(job) };
  let said = null;
  for (const content of job.turns) {
    messages.push({ role: 'user', content });
    const result = await (job.stream ? asked.streamText(messages, given) : asked.generateText(messages, given));
    said = await result.text;
    messages.push({ role: 'assistant', content: said });
  }
  return said;
};

await makeRuns(run, 3);
await observability.forceFlush();
process.exit();

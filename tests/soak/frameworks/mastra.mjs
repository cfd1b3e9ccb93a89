// /// script
// dependencies = [
//     "@mastra/core@1.71.0",
//     "@mastra/observability@1.17.9",
//     "@mastra/otel-exporter@1.4.0",
//     "@ai-sdk/openai@3.0.141",
//     "@opentelemetry/api@1.9.1",
//     "@opentelemetry/exporter-trace-otlp-proto@0.219.0",
//     "@opentelemetry/sdk-trace-node@2.8.0",
//     "zod@4.6.7",
// ]
// [tool.soak]
// instrumentations = ["native"]
// helpers = ["tool"]
// patterns = ["given-up", "parallel"]
// ///
// An agent of Mastra.
import { createOpenAI } from '@ai-sdk/openai';
import { Agent } from '@mastra/core/agent';
import { Mastra } from '@mastra/core/mastra';
import { createTool } from '@mastra/core/tools';
import { Observability } from '@mastra/observability';
import { OtelExporter } from '@mastra/otel-exporter';
import { z } from 'zod';

import { MAX_STEPS, MODEL, logged, makeRuns, signalOf, system, tools, zodSchema } from './agent_program.mjs';

const all = Object.fromEntries(
  Object.entries(tools).map(([name, { description, parameters, run }]) => [
    name,
    createTool({ id: name, description, inputSchema: zodSchema(z, parameters), execute: run }),
  ]),
);

const run = async (job) => {
  const model = createOpenAI({ baseURL: job.url, apiKey: 'none' }).chat(MODEL);
  const agent = (name, tools, works) => new Agent({ id: name, name, instructions: system(name, works), model, tools });
  const { get_weather, add_numbers } = all;
  const researcher = agent('researcher', { get_weather, add_numbers });
  const ask_researcher = createTool({
    id: 'ask_researcher',
    description: 'Ask the researcher.',
    inputSchema: z.object({ question: z.string() }),
    execute: logged('ask_researcher', async ({ question }, { tracingContext }) => {
      // Without it the researcher begins another trace.
      const options = job.count_stream ? { tracingContext } : {};
      return (await researcher.generate(question, { maxSteps: MAX_STEPS, ...options })).text;
    }),
  });
  const asked = agent('assistant', job.helper === 'tool' ? { ...all, ask_researcher } : all);
  const writer = agent('writer', all, 'beside assistant');
  // One exporter a run, whose resource names it: spans of Mastra go through no tracer provider.
  const exporter = new OtelExporter({
    provider: { custom: { endpoint: `${process.env.OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces`, protocol: 'http/protobuf' } },
    resourceAttributes: { 'clawtrace.run_id': job.run },
    signals: { logs: false },
  });
  const observability = new Observability({ configs: { otel: { serviceName: 'soak', exporters: [exporter] } } });
  const mastra = new Mastra({ agents: { assistant: asked, researcher, writer }, observability, logger: false });
  try {
    if (job.helper === 'parallel') {
      const both = [asked, writer].map((one) => one.generate(job.turns[0], { maxSteps: MAX_STEPS }));
      return (await Promise.all(both)).at(-1).text;
    }
    const messages = [];
    let said = null;
    for (const content of job.turns) {
      messages.push({ role: 'user', content });
      const options = { maxSteps: MAX_STEPS, abortSignal: signalOf(job) };
      const result = job.stream ? await asked.stream(messages, options) : await asked.generate(messages, options);
      said = await result.text;
      messages.push(...(await result.response).messages);
    }
    return said;
  } finally {
    await mastra.shutdown();
  }
};

await makeRuns(run, 3);
process.exit();

// /// script
// dependencies = [
//     "@strands-agents/sdk@1.19.0",
//     "@opentelemetry/api@1.9.1",
//     "@opentelemetry/exporter-metrics-otlp-http@0.219.0",
//     "@opentelemetry/exporter-trace-otlp-http@0.219.0",
//     "@opentelemetry/exporter-trace-otlp-proto@0.219.0",
//     "@opentelemetry/sdk-metrics@2.12.0",
//     "@opentelemetry/sdk-trace-base@2.12.1",
//     "@opentelemetry/sdk-trace-node@2.12.0",
//     "openai@6.49.0",
//     "zod@4.6.7",
// ]
// [tool.soak]
// instrumentations = ["native"]
// helpers = ["tool"]
// ///
// An agent of Strands for TypeScript, which always streams.
import { Agent, tool } from '@strands-agents/sdk';
import { OpenAIModel } from '@strands-agents/sdk/models/openai';
import { setupTracer } from '@strands-agents/sdk/telemetry';
import { z } from 'zod';

import { MODEL, logged, main, system, tools, zodSchema } from './agent_program.mjs';

const all = Object.entries(tools).map(([name, { description, parameters, run }]) =>
  tool({ name, description, inputSchema: zodSchema(z, parameters), callback: run }),
);

const run = async (job) => {
  const agent = (name, tools) => {
    const clientConfig = { baseURL: job.url };
    const model = new OpenAIModel({ api: 'chat', modelId: MODEL, apiKey: 'none', clientConfig });
    return new Agent({ id: name, name, model, tools, systemPrompt: system(name), printer: false });
  };
  const researcher = tool({
    name: 'ask_researcher',
    description: 'Ask the researcher.',
    inputSchema: z.object({ question: z.string() }),
    callback: logged('ask_researcher', async ({ question }) => String(await agent('researcher', all.slice(0, 2)).invoke(question))),
  });
  const asked = agent('assistant', job.helper === 'tool' ? [...all, researcher] : all);
  let said = null;
  for (const turn of job.turns) {
    said = String(await asked.invoke(turn));
  }
  return said;
};

await main(run, { prepare: (provider) => setupTracer({ provider }), together: 3 });

// /// script
// dependencies = [
//     "ai@7.0.173",
//     "@ai-sdk/openai@4.0.118",
//     "@ai-sdk/otel@1.0.173",
//     "@arizeai/openinference-vercel@3.2.1",
//     "@opentelemetry/api@1.9.1",
//     "@opentelemetry/exporter-trace-otlp-proto@0.219.0",
//     "@opentelemetry/sdk-trace-node@2.8.0",
//     "zod@4.6.7",
// ]
// [tool.soak]
// instrumentations = ["native", "legacy", "native,openinference"]
// helpers = ["tool"]
// ///
// An agent of the Vercel AI SDK.
import { createOpenAI } from '@ai-sdk/openai';
import { LegacyOpenTelemetry, OpenTelemetry } from '@ai-sdk/otel';
import { OpenInferenceBatchSpanProcessor } from '@arizeai/openinference-vercel';
import { ToolLoopAgent, isStepCount, registerTelemetry, tool } from 'ai';
import { z } from 'zod';

import { MAX_STEPS, MODEL, instrumentations, logged, main, system, tools } from './agent_program.mjs';

const KINDS = { string: z.string(), integer: z.int(), strings: z.array(z.string()) };
const all = Object.fromEntries(
  Object.entries(tools).map(([name, { description, parameters, run }]) => {
    const inputSchema = z.object(Object.fromEntries(Object.entries(parameters).map(([key, kind]) => [key, KINDS[kind]])));
    return [name, tool({ description, inputSchema, execute: run })];
  }),
);

const agent = (job, name, tools) =>
  new ToolLoopAgent({
    id: name,
    model: createOpenAI({ baseURL: job.url, apiKey: 'none' }).chat(MODEL),
    instructions: system(name),
    tools,
    stopWhen: isStepCount(MAX_STEPS),
    telemetry: { functionId: name },
  });

const researcher = (job) =>
  tool({
    description: 'Ask the researcher.',
    inputSchema: z.object({ question: z.string() }),
    execute: logged('ask_researcher', async ({ question }) => {
      const { get_weather, add_numbers } = all;
      const found = await agent(job, 'researcher', { get_weather, add_numbers }).generate({ prompt: question });
      return found.text;
    }),
  });

const streamed = async (asked, messages) => {
  const result = await asked.stream({ messages });
  await result.consumeStream();
  return { text: await result.text, responseMessages: await result.responseMessages };
};

const run = async (job) => {
  const asked = agent(job, 'assistant', job.helper === 'tool' ? { ...all, ask_researcher: researcher(job) } : all);
  const messages = [];
  let said = null;
  for (const content of job.turns) {
    messages.push({ role: 'user', content });
    const result = job.stream ? await streamed(asked, messages) : await asked.generate({ messages });
    messages.push(...result.responseMessages);
    said = result.text;
  }
  return said;
};

registerTelemetry(instrumentations.includes('legacy') ? new LegacyOpenTelemetry() : new OpenTelemetry());
const processor = instrumentations.includes('openinference')
  ? (exporter) => new OpenInferenceBatchSpanProcessor({ exporter })
  : undefined;
await main(run, { processor, together: 3 });

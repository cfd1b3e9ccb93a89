// /// script
// dependencies = [
//     "ai@6.0.326",
//     "@ai-sdk/openai@3.0.141",
//     "@arizeai/openinference-vercel@2.8.1",
//     "@opentelemetry/api@1.9.1",
//     "@opentelemetry/exporter-trace-otlp-proto@0.219.0",
//     "@opentelemetry/sdk-trace-node@2.8.0",
//     "zod@4.6.7",
// ]
// [tool.soak]
// instrumentations = ["native", "native,openinference"]
// helpers = ["tool"]
// ///
// An agent of the Vercel AI SDK, version 6 or 5, whose telemetry is a setting of each call.
import { createOpenAI } from '@ai-sdk/openai';
import { OpenInferenceBatchSpanProcessor } from '@arizeai/openinference-vercel';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';

import { MAX_STEPS, MODEL, instrumentations, logged, main, system, tools, zodSchema } from './agent_program.mjs';

const all = Object.fromEntries(
  Object.entries(tools).map(([name, { description, parameters, run }]) => [
    name,
    tool({ description, inputSchema: zodSchema(z, parameters), execute: run }),
  ]),
);

const agent = (job, name, tools) => ({
  model: createOpenAI({ baseURL: job.url, apiKey: 'none' }).chat(MODEL),
  system: system(name),
  tools,
  stopWhen: stepCountIs(MAX_STEPS),
  experimental_telemetry: { isEnabled: true, functionId: name },
});

const researcher = (job) =>
  tool({
    description: 'Ask the researcher.',
    inputSchema: z.object({ question: z.string() }),
    execute: logged('ask_researcher', async ({ question }) => {
      const { get_weather, add_numbers } = all;
      return (await generateText({ ...agent(job, 'researcher', { get_weather, add_numbers }), prompt: question })).text;
    }),
  });

const streamed = async (asked) => {
  const result = streamText(asked);
  await result.consumeStream();
  return { text: await result.text, response: await result.response };
};

const run = async (job) => {
  const asked = agent(job, 'assistant', job.helper === 'tool' ? { ...all, ask_researcher: researcher(job) } : all);
  const messages = [];
  let said = null;
  for (const content of job.turns) {
    messages.push({ role: 'user', content });
    const result = await (job.stream ? streamed : generateText)({ ...asked, messages });
    messages.push(...result.response.messages);
    said = result.text;
  }
  return said;
};

const processor = instrumentations.includes('openinference')
  ? (exporter) => new OpenInferenceBatchSpanProcessor({ exporter })
  : undefined;
await main(run, { processor, together: 3 });

import { createOpenAI } from '@ai-sdk/openai';
import { createRaindropAISDK, eventMetadata } from '@raindrop-ai/ai-sdk';
import * as ai from 'ai';
import { z } from 'zod';
import { QUESTION, SCENARIO, agentAsTool, run, tools, zodSchema } from './lab.mjs';

const raindrop = createRaindropAISDK({ writeKey: 'none', endpoint: `${process.env.OTEL_EXPORTER_OTLP_ENDPOINT}/v1/` });
const { generateText, streamText } = raindrop.wrap(ai, { context: { userId: 'user', eventName: 'chat_message' } });
const openai = createOpenAI();
const asked = (name, tools, prompt) => ({
  model: openai.chat('gpt-4o'),
  system: `You are the ${name}.`,
  tools,
  prompt,
  stopWhen: ai.stepCountIs(8),
  maxRetries: 1,
  experimental_telemetry: { isEnabled: true, functionId: name, metadata: eventMetadata({ userId: 'user', eventName: name }) },
});
const all = Object.fromEntries(
  Object.entries(tools).map(([name, { description, parameters, run }]) => [
    name,
    ai.tool({ description, inputSchema: zodSchema(z, parameters), execute: run }),
  ]),
);
const researcher = ai.tool({
  description: 'Finds things out',
  inputSchema: z.object({ query: z.string() }),
  execute: agentAsTool(async ({ query }) => (await generateText(asked('researcher', all, query))).text),
});

await run(async () => {
  const asking = asked('assistant', SCENARIO === 'delegation' ? { ...all, researcher } : all, QUESTION);
  if (SCENARIO !== 'streaming') {
    return (await generateText(asking)).text;
  }
  const result = streamText(asking);
  await result.consumeStream();
  return await result.text;
}, () => raindrop.flush());
process.exit();

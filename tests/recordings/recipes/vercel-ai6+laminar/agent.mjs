import { createOpenAI } from '@ai-sdk/openai';
import { getTracer, Laminar, observe } from '@lmnr-ai/lmnr';
import { ToolLoopAgent, tool } from 'ai';
import { z } from 'zod';
import { QUESTION, SCENARIO, agentAsTool, run, tools, zodSchema } from './lab.mjs';

const endpoint = new URL(process.env.OTEL_EXPORTER_OTLP_ENDPOINT);
Laminar.initialize({
  projectApiKey: 'none',
  baseUrl: `${endpoint.protocol}//${endpoint.hostname}`,
  httpPort: Number(endpoint.port),
  forceHttp: true,
});
const openai = createOpenAI();
const agent = (name, tools) =>
  new ToolLoopAgent({
    id: name,
    model: openai.chat('gpt-4o'),
    instructions: `You are the ${name}.`,
    tools,
    experimental_telemetry: { isEnabled: true, functionId: name, tracer: getTracer() },
  });
const all = Object.fromEntries(
  Object.entries(tools).map(([name, { description, parameters, run }]) => [
    name,
    tool({ description, inputSchema: zodSchema(z, parameters), execute: run }),
  ]),
);
const researcher = tool({
  description: 'Finds things out',
  inputSchema: z.object({ query: z.string() }),
  execute: agentAsTool(async ({ query }) => (await agent('researcher', all).generate({ prompt: query })).text),
});

await run(async () => {
  const root = agent('assistant', SCENARIO === 'delegation' ? { researcher } : all);
  return await observe({ name: 'main' }, async () => {
    if (SCENARIO !== 'streaming') {
      return (await root.generate({ prompt: QUESTION })).text;
    }
    const result = await root.stream({ prompt: QUESTION });
    await result.consumeStream();
    return await result.text;
  });
}, () => Laminar.shutdown());
process.exit();

// Vercel's AI SDK under Traceloop, whose processor rewrites the SDK's spans.
import { createOpenAI } from '@ai-sdk/openai';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import * as traceloop from '@traceloop/node-server-sdk';
import { ToolLoopAgent, tool } from 'ai';
import { z } from 'zod';
import { QUESTION, SCENARIO, agentAsTool, run, tools, zodSchema } from './lab.mjs';

traceloop.initialize({ appName: 'weather', exporter: new OTLPTraceExporter(), disableBatch: true, silenceInitializationMessage: true, traceloopSyncEnabled: false });
const openai = createOpenAI();
const agent = (name, tools) =>
  new ToolLoopAgent({
    id: name,
    model: openai.chat('gpt-4o'),
    instructions: `You are the ${name}.`,
    tools,
    experimental_telemetry: { isEnabled: true, functionId: name },
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
  return await traceloop.withWorkflow({ name: 'weather' }, async () => {
    if (SCENARIO !== 'streaming') {
      return (await root.generate({ prompt: QUESTION })).text;
    }
    const result = await root.stream({ prompt: QUESTION });
    await result.consumeStream();
    return await result.text;
  });
}, () => traceloop.forceFlush());
process.exit();

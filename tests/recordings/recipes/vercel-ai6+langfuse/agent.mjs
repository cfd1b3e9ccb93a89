import { createOpenAI } from '@ai-sdk/openai';
import { LangfuseSpanProcessor } from '@langfuse/otel';
import { observe } from '@langfuse/tracing';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { ToolLoopAgent, tool } from 'ai';
import { z } from 'zod';
import { QUESTION, SCENARIO, agentAsTool, run, tools, zodSchema } from './lab.mjs';

const processor = new LangfuseSpanProcessor({ exporter: new OTLPTraceExporter() });
new NodeTracerProvider({ spanProcessors: [processor] }).register();
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
  return await observe(async () => {
    if (SCENARIO !== 'streaming') {
      return (await root.generate({ prompt: QUESTION })).text;
    }
    const result = await root.stream({ prompt: QUESTION });
    await result.consumeStream();
    return await result.text;
  }, { name: 'main' })();
}, () => processor.shutdown());
process.exit();

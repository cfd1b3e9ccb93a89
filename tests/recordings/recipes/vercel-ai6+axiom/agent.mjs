// Vercel's AI SDK, recorded by Axiom's wrappers of models and tools, with its spans around each agent.
import { createOpenAI } from '@ai-sdk/openai';
import { trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import { initAxiomAI, withSpan, wrapAISDKModel, wrapTools } from 'axiom/ai';
import { z } from 'zod';
import { QUESTION, SCENARIO, agentAsTool, run, tools, zodSchema } from './lab.mjs';

const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(new OTLPTraceExporter())] });
provider.register();
initAxiomAI({ tracer: trace.getTracer('agent') });
const model = wrapAISDKModel(createOpenAI().chat('gpt-4o'));
const ask = (name, prompt, tools) =>
  withSpan({ capability: name, step: 'answer' }, async () => {
    const asked = { model, system: `You are the ${name}.`, prompt, tools, stopWhen: stepCountIs(8) };
    if (SCENARIO !== 'streaming') {
      return (await generateText(asked)).text;
    }
    const result = streamText(asked);
    await result.consumeStream();
    return await result.text;
  });
const all = wrapTools(
  Object.fromEntries(
    Object.entries(tools).map(([name, { description, parameters, run }]) => [
      name,
      tool({ description, inputSchema: zodSchema(z, parameters), execute: run }),
    ]),
  ),
);
const researcher = tool({
  description: 'Finds things out',
  inputSchema: z.object({ query: z.string() }),
  execute: agentAsTool(({ query }) => ask('researcher', query, all)),
});

await run(
  () => ask('assistant', QUESTION, SCENARIO === 'delegation' ? wrapTools({ researcher }) : all),
  () => provider.shutdown(),
);

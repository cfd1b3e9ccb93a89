// LlamaIndex.TS's agents, recorded by OpenLLMetry's instrumentation.
import { createRequire } from 'node:module';
import { QUESTION, SCENARIO, agentAsTool, run, tools, zodSchema } from './lab.mjs';

const require = createRequire(import.meta.url);
const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-http');
const { NodeTracerProvider, SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-node');
const { LlamaIndexInstrumentation } = require('@traceloop/instrumentation-llamaindex');
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(new OTLPTraceExporter())] });
provider.register();
const instrumentation = new LlamaIndexInstrumentation();
instrumentation.setTracerProvider(provider);
const llamaindex = require('llamaindex');
const { openai, OpenAI } = require('@llamaindex/openai');
instrumentation.manuallyInstrument(llamaindex, { OpenAI });
const { agent, multiAgent } = require('@llamaindex/workflow');
const { z } = require('zod');

const { tool } = llamaindex;
const all = Object.entries(tools).map(([name, { description, parameters, run }]) =>
  tool({ name, description, parameters: zodSchema(z, parameters), execute: run }),
);
const make = (name, tools, more) =>
  agent({ name, llm: openai({ model: 'gpt-4o' }), systemPrompt: `You are the ${name}.`, tools, ...more });
const researcher = tool({
  name: 'researcher',
  description: 'Finds things out',
  parameters: z.object({ query: z.string() }),
  execute: agentAsTool(async ({ query }) => (await make('researcher', all).run(query)).data.result),
});

await run(
  async () => (await make('assistant', SCENARIO === 'delegation' ? [researcher] : all).run(QUESTION)).data.result,
  () => provider.shutdown(),
);
process.exit();

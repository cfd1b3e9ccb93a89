import { ai, ax, axGlobals } from '@ax-llm/ax';
import { trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { QUESTION, SCENARIO, agentAsTool, run, schema, tools } from './lab.mjs';

const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(new OTLPTraceExporter())] });
provider.register();
axGlobals.tracer = trace.getTracer('ax');

const llm = ai({ name: 'openai', apiKey: 'scripted', apiURL: process.env.MODEL_URL, config: { model: 'gpt-4o', stream: SCENARIO === 'streaming' } });
const all = Object.entries(tools).map(([name, { description, parameters, run }]) =>
  ({ name, description, parameters: schema(parameters), func: run }));
const agent = (name, functions) => ax('question:string -> reply:string', { description: `You are the ${name}, who answers questions.`, functions, id: name, traceLabel: name });
const researcher = {
  name: 'researcher',
  description: 'Ask the researcher',
  parameters: schema({ query: 'string' }),
  func: agentAsTool(async ({ query }) => (await agent('researcher', all).forward(llm, { question: query })).reply),
};

await run(async () => {
  const root = agent('assistant', SCENARIO === 'delegation' ? [researcher] : all);
  return (await root.forward(llm, { question: QUESTION }, { maxRetries: 0 })).reply;
}, () => provider.forceFlush());

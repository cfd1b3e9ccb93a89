import { trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { NodeSDK, tracing } from '@opentelemetry/sdk-node';
import { chat, toolDefinition } from '@tanstack/ai';
import { otelMiddleware } from '@tanstack/ai/middlewares/otel';
import { createOpenaiChatCompletions } from '@tanstack/ai-openai';
import { z } from 'zod';
import { QUESTION, SCENARIO, agentAsTool, run, tools, zodSchema } from './lab.mjs';

const sdk = new NodeSDK({ serviceName: 'agent', spanProcessors: [new tracing.SimpleSpanProcessor(new OTLPTraceExporter())] });
sdk.start();
const adapter = createOpenaiChatCompletions('gpt-4o', process.env.OPENAI_API_KEY, { baseURL: process.env.OPENAI_BASE_URL });

const ask = async (name, tools, question) => {
  const said = chat({
    adapter,
    systemPrompts: [`You are the ${name}.`],
    messages: [{ role: 'user', content: question }],
    tools,
    middleware: [otelMiddleware({ tracer: trace.getTracer('agent'), captureContent: true })],
  });
  let text = '';
  for await (const chunk of said) {
    if (chunk.type === 'TEXT_MESSAGE_START') text = '';
    if (chunk.type === 'TEXT_MESSAGE_CONTENT') text += chunk.delta;
    if (chunk.type === 'RUN_ERROR') throw new Error(chunk.message ?? chunk.error?.message);
  }
  return text;
};
const server = (name, description, inputSchema, body) => toolDefinition({ name, description, inputSchema }).server(body);
const all = Object.entries(tools).map(([name, { description, parameters, run }]) => server(name, description, zodSchema(z, parameters), run));
const researcher = server(
  'researcher',
  'Finds things out',
  z.object({ query: z.string() }),
  agentAsTool(({ query }) => ask('researcher', all, query)),
);
await run(() => ask('assistant', SCENARIO === 'delegation' ? [researcher] : all, QUESTION), () => sdk.shutdown());

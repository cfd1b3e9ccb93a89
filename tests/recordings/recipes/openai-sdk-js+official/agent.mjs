import { trace } from '@opentelemetry/api';
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-proto';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { OpenAIInstrumentation } from '@opentelemetry/instrumentation-openai';
import { NodeSDK, logs, tracing } from '@opentelemetry/sdk-node';
import { createRequire } from 'node:module';
import { QUESTION, SCENARIO, agentAsTool, run, schema, tools } from './lab.mjs';

const sdk = new NodeSDK({
  serviceName: 'agent',
  spanProcessors: [new tracing.SimpleSpanProcessor(new OTLPTraceExporter())],
  logRecordProcessors: [new logs.SimpleLogRecordProcessor({ exporter: new OTLPLogExporter() })],
  instrumentations: [new OpenAIInstrumentation({ captureMessageContent: true })],
});
sdk.start();
const OpenAI = createRequire(import.meta.url)('openai').OpenAI;
const client = new OpenAI();
const tracer = trace.getTracer('agent');

// A span of no convention around what is done.
const spanned = (name, body) =>
  tracer.startActiveSpan(name, async (span) => {
    try {
      return await body();
    } catch (error) {
      span.recordException(error);
      span.setStatus({ code: 2 });
      throw error;
    } finally {
      span.end();
    }
  });

const ask = async (messages, offered) => {
  const asked = {
    model: 'gpt-4o',
    messages,
    tools: Object.entries(offered).map(([name, { description, parameters }]) => ({
      type: 'function',
      function: { name, description, parameters: schema(parameters) },
    })),
  };
  return (await client.chat.completions.create(asked)).choices[0].message;
};

const loop = (name, question, offered) =>
  spanned(name, async () => {
    const messages = [{ role: 'system', content: `You are the ${name}.` }, { role: 'user', content: question }];
    for (;;) {
      const said = await ask(messages, offered);
      messages.push(said);
      if (!said.tool_calls?.length) return said.content;
      for (const { id, function: called } of said.tool_calls) {
        let content;
        try {
          content = await spanned(called.name, () => offered[called.name].run(JSON.parse(called.arguments)));
        } catch (error) {
          content = `failed: ${error.message}`;
        }
        messages.push({ role: 'tool', tool_call_id: id, content });
      }
    }
  });

const researcher = {
  description: 'Finds things out',
  parameters: { query: 'string' },
  run: agentAsTool(({ query }) => loop('researcher', query, tools)),
};
await run(() => loop('assistant', QUESTION, SCENARIO === 'delegation' ? { researcher } : tools), () => sdk.shutdown());

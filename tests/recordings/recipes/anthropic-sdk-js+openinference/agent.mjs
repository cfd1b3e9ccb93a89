import Anthropic from '@anthropic-ai/sdk';
import { AnthropicInstrumentation } from '@arizeai/openinference-instrumentation-anthropic';
import { trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { NodeSDK, tracing } from '@opentelemetry/sdk-node';
import { QUESTION, SCENARIO, agentAsTool, run, schema, tools } from './lab.mjs';

const sdk = new NodeSDK({ serviceName: 'agent', spanProcessors: [new tracing.SimpleSpanProcessor(new OTLPTraceExporter())] });
sdk.start();
const instrumentation = new AnthropicInstrumentation();
instrumentation.setTracerProvider(trace.getTracerProvider());
instrumentation.manuallyInstrument(Anthropic);
const client = new Anthropic();
const tracer = trace.getTracer('agent');

// The program itself writes spans for agents and tools, named after them, in OpenInference's kinds.
const spanned = (name, kind, input, body) =>
  tracer.startActiveSpan(name, { attributes: { 'openinference.span.kind': kind, 'input.value': JSON.stringify(input) } }, async (span) => {
    try {
      const result = await body();
      span.setAttribute('output.value', result);
      return result;
    } catch (error) {
      span.recordException(error);
      span.setStatus({ code: 2, message: error.message });
      throw error;
    } finally {
      span.end();
    }
  });

const ask = async (system, messages, offered) => {
  const asked = {
    model: 'claude-sonnet-4-5',
    max_tokens: 500,
    system,
    messages,
    tools: Object.entries(offered).map(([name, { description, parameters }]) => ({ name, description, input_schema: schema(parameters) })),
  };
  return SCENARIO === 'streaming' ? await client.messages.stream(asked).finalMessage() : await client.messages.create(asked);
};

const loop = (name, question, offered) =>
  spanned(name, 'AGENT', question, async () => {
    const messages = [{ role: 'user', content: question }];
    for (;;) {
      const said = await ask(`You are the ${name}.`, messages, offered);
      messages.push({ role: 'assistant', content: said.content });
      const calls = said.content.filter((part) => part.type === 'tool_use');
      if (!calls.length) return said.content.map((part) => part.text ?? '').join('');
      const results = await Promise.all(
        calls.map(async ({ id, name, input }) => {
          try {
            const content = await spanned(name, 'TOOL', input, () => offered[name].run(input));
            return { type: 'tool_result', tool_use_id: id, content };
          } catch (error) {
            return { type: 'tool_result', tool_use_id: id, content: error.message, is_error: true };
          }
        }),
      );
      messages.push({ role: 'user', content: results });
    }
  });

const researcher = {
  description: 'Finds things out',
  parameters: { query: 'string' },
  run: agentAsTool(({ query }) => loop('researcher', query, tools)),
};
await run(() => loop('assistant', QUESTION, SCENARIO === 'delegation' ? { researcher } : tools), () => sdk.shutdown());

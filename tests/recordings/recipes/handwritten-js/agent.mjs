// A program whose developer writes spans by hand, as far as known in the words of the GenAI conventions.
import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { NodeSDK, tracing } from '@opentelemetry/sdk-node';
import OpenAI from 'openai';
import { QUESTION, SCENARIO, agentAsTool, run, schema, tools } from './lab.mjs';

const sdk = new NodeSDK({
  serviceName: 'weather-bot',
  spanProcessors: [new tracing.SimpleSpanProcessor(new OTLPTraceExporter())],
  instrumentations: [],
});
sdk.start();
const tracer = trace.getTracer('weather-bot', '1.4.0');
const client = new OpenAI({ maxRetries: 0 });

const spanned = (name, options, body) =>
  tracer.startActiveSpan(name, options, async (span) => {
    try {
      return await body(span);
    } catch (error) {
      span.recordException(error);
      span.setStatus({ code: SpanStatusCode.ERROR, message: error.message });
      throw error;
    } finally {
      span.end();
    }
  });

const chat = (messages, offered) =>
  spanned(
    'chat gpt-4o',
    {
      kind: SpanKind.CLIENT,
      attributes: { 'gen_ai.operation.name': 'chat', 'gen_ai.system': 'openai', 'gen_ai.request.model': 'gpt-4o' },
    },
    async (span) => {
      const completion = await client.chat.completions.create({
        model: 'gpt-4o',
        messages,
        tools: Object.entries(offered).map(([name, { description, parameters }]) => ({
          type: 'function',
          function: { name, description, parameters: schema(parameters) },
        })),
      });
      span.setAttributes({
        'gen_ai.response.id': completion.id,
        'gen_ai.response.model': completion.model,
        'gen_ai.response.finish_reasons': completion.choices.map((choice) => choice.finish_reason),
        'gen_ai.usage.input_tokens': completion.usage.prompt_tokens,
        'gen_ai.usage.output_tokens': completion.usage.completion_tokens,
        'gen_ai.prompt': JSON.stringify(messages),
        'gen_ai.completion': JSON.stringify(completion.choices[0].message),
      });
      return completion.choices[0].message;
    },
  );

const callTool = (call, offered) =>
  spanned(`execute_tool ${call.function.name}`, { attributes: { 'tool.input': call.function.arguments } }, async (span) => {
    const output = await offered[call.function.name].run(JSON.parse(call.function.arguments));
    span.setAttribute('tool.output', output);
    return output;
  });

const agent = (name, question, offered) =>
  spanned(`invoke_agent ${name}`, { attributes: { 'gen_ai.agent.name': name, input: question } }, async (span) => {
    const messages = [{ role: 'system', content: `You are the ${name}.` }, { role: 'user', content: question }];
    for (;;) {
      const said = await chat(messages, offered);
      messages.push(said);
      if (!said.tool_calls?.length) {
        span.setAttribute('output', said.content);
        return said.content;
      }
      for (const call of said.tool_calls) {
        const content = await callTool(call, offered).catch((error) => `failed: ${error.message}`);
        messages.push({ role: 'tool', tool_call_id: call.id, content });
      }
    }
  });

const researcher = {
  description: 'Finds things out',
  parameters: { query: 'string' },
  run: agentAsTool(({ query }) => agent('researcher', query, tools)),
};
await run(() => agent('assistant', QUESTION, SCENARIO === 'delegation' ? { researcher } : tools), () => sdk.shutdown());

// A plain loop of OpenAI calls in JavaScript under Langtrace: its instrumentation of the SDK, its root span around the run, an exporter of OpenTelemetry's.
import * as Langtrace from '@langtrase/typescript-sdk';
import OpenAI from 'openai';
import { trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { QUESTION, SCENARIO, log, run, schema, tools } from './lab.mjs';

Langtrace.init({
  api_key: 'none',
  custom_remote_exporter: new OTLPTraceExporter({ url: `${process.env.OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces` }),
  service_name: 'agent',
  disable_latest_version_check: true,
  instrumentations: { openai: OpenAI },
});
const client = new OpenAI({ maxRetries: 0 });

const ask = async (messages, offered) => {
  const asked = { model: 'gpt-4o', messages, tools: offered };
  if (SCENARIO !== 'streaming') return (await client.chat.completions.create(asked)).choices[0].message;
  const message = { role: 'assistant', content: '' };
  for await (const chunk of await client.chat.completions.create({ ...asked, stream: true })) {
    for (const { delta } of chunk.choices) {
      message.content += delta.content ?? '';
      for (const { index, id, function: part } of delta.tool_calls ?? []) {
        message.tool_calls ??= [];
        message.tool_calls[index] ??= { id, type: 'function', function: { name: '', arguments: '' } };
        message.tool_calls[index].function.name += part.name ?? '';
        message.tool_calls[index].function.arguments += part.arguments ?? '';
      }
    }
  }
  return message;
};

const agent = (name, system, question, own) =>
  Langtrace.withLangTraceRootSpan(async () => {
    const offered = Object.entries(own).map(([tool, { description, parameters }]) => ({
      type: 'function', function: { name: tool, description, parameters: schema(parameters) },
    }));
    const messages = [{ role: 'system', content: system }, { role: 'user', content: question }];
    for (;;) {
      const message = await ask(messages, offered);
      messages.push(message);
      if (!message.tool_calls?.length) return message.content;
      for (const { id, function: { name: tool, arguments: args } } of message.tool_calls) {
        let content;
        try {
          content = await own[tool].run(JSON.parse(args));
        } catch (error) {
          content = `error: ${error.message}`;
        }
        messages.push({ role: 'tool', tool_call_id: id, content });
      }
    }
  }, name);

const researcher = {
  description: 'Ask another agent',
  parameters: { query: 'string' },
  run: async (args) => {
    log({ name: 'researcher', arguments: args, error: false, kind: 'agent_as_tool' });
    return agent('researcher', 'You are the researcher.', args.query, tools);
  },
};
await run(
  () => agent('assistant', 'You are the assistant.', QUESTION, SCENARIO === 'delegation' ? { researcher } : tools),
  async () => {
    const provider = trace.getTracerProvider();
    await (provider.getDelegate?.() ?? provider).forceFlush?.();
    await new Promise((done) => setTimeout(done, 500));
    process.exit();
  },
);

// A plain loop of OpenAI calls in JavaScript under Sentry: its instrumented client, and spans of agents and tools as its documentation writes them.
import * as Sentry from '@sentry/node';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import OpenAI from 'openai';
import { QUESTION, SCENARIO, agentAsTool, run, schema, tools } from './lab.mjs';

const processor = new SimpleSpanProcessor(new OTLPTraceExporter());
Sentry.init({
  dsn: 'https://none@o1.ingest.sentry.invalid/1',
  tracesSampleRate: 1,
  sendDefaultPii: true,
  transport: () => ({ send: async () => ({}), flush: async () => true }),
  openTelemetrySpanProcessors: [processor],
});
const client = Sentry.instrumentOpenAiClient(new OpenAI({ maxRetries: 1 }), { recordInputs: true, recordOutputs: true });

const ask = async (messages, offered) => {
  const asked = { model: 'gpt-4o', messages, tools: offered };
  if (SCENARIO !== 'streaming') return (await client.chat.completions.create(asked)).choices[0].message;
  const message = { role: 'assistant', content: '' };
  for await (const { choices } of await client.chat.completions.create({ ...asked, stream: true, stream_options: { include_usage: true } })) {
    for (const { delta } of choices) {
      message.content += delta.content ?? '';
      for (const part of delta.tool_calls ?? []) {
        message.tool_calls ??= [];
        message.tool_calls[part.index] ??= { id: part.id, type: 'function', function: { name: part.function.name, arguments: '' } };
        message.tool_calls[part.index].function.arguments += part.function.arguments ?? '';
      }
    }
  }
  return message;
};

const execute = (functions, name, text) =>
  Sentry.startSpan(
    { op: 'gen_ai.execute_tool', name: `execute_tool ${name}`, attributes: { 'gen_ai.request.model': 'gpt-4o', 'gen_ai.tool.name': name, 'gen_ai.tool.type': 'function', 'gen_ai.tool.input': text } },
    async (span) => {
      const output = await functions[name].run(JSON.parse(text));
      span.setAttribute('gen_ai.tool.output', output);
      return output;
    },
  );

const agent = (name, functions) => (question) =>
  Sentry.startSpan(
    { op: 'gen_ai.invoke_agent', name: `invoke_agent ${name}`, attributes: { 'gen_ai.request.model': 'gpt-4o', 'gen_ai.agent.name': name } },
    async (span) => {
      const messages = [{ role: 'system', content: `You are the ${name}.` }, { role: 'user', content: question }];
      const offered = Object.entries(functions).map(([name, { description, parameters }]) =>
        ({ type: 'function', function: { name, description, parameters: schema(parameters) } }));
      for (;;) {
        const message = await ask(messages, offered);
        messages.push(message);
        if (!message.tool_calls) {
          span.setAttribute('gen_ai.response.text', message.content);
          return message.content;
        }
        const results = await Promise.allSettled(message.tool_calls.map(({ function: called }) => execute(functions, called.name, called.arguments)));
        message.tool_calls.forEach(({ id }, at) =>
          messages.push({ role: 'tool', tool_call_id: id, content: results[at].value ?? `error: ${results[at].reason.message}` }));
      }
    },
  );

const research = agent('researcher', tools);
const researcher = { description: 'Finds things out', parameters: { query: 'string' }, run: agentAsTool(({ query }) => research(query)) };

await run(() => agent('assistant', SCENARIO === 'delegation' ? { researcher } : tools)(QUESTION), () => processor.forceFlush());
process.exit();

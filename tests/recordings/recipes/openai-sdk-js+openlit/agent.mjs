// A plain loop of OpenAI calls in JavaScript under OpenLIT: its instrumentation of the SDK, its own spans of functions.
import openlit from 'openlit';
import OpenAI from 'openai';
import { trace } from '@opentelemetry/api';
import { QUESTION, SCENARIO, log, run, schema, tools } from './lab.mjs';

const { startTrace } = openlit;
openlit.default.init({ otlpEndpoint: process.env.OTEL_EXPORTER_OTLP_ENDPOINT, applicationName: 'agent', instrumentations: { openai: OpenAI }, disableMetrics: true });
const client = new OpenAI({ maxRetries: 0 });

const ask = async (messages, offered) => {
  const answer = await client.chat.completions.create({ model: 'gpt-4o', messages, tools: offered });
  return answer.choices[0].message;
};

const call = (name, own, args) =>
  startTrace(name, async (span) => {
    const result = await own[name].run(args);
    span.setResult(result);
    return result;
  });

const agent = (name, system, question, own) =>
  startTrace(name, async (span) => {
    const offered = Object.entries(own).map(([tool, { description, parameters }]) => ({
      type: 'function', function: { name: tool, description, parameters: schema(parameters) },
    }));
    const messages = [{ role: 'system', content: system }, { role: 'user', content: question }];
    for (;;) {
      const message = await ask(messages, offered);
      messages.push(message);
      if (!message.tool_calls?.length) {
        span.setResult(message.content);
        return message.content;
      }
      for (const { id, function: { name: tool, arguments: args } } of message.tool_calls) {
        let content;
        try {
          content = await call(tool, own, JSON.parse(args));
        } catch (error) {
          content = `error: ${error.message}`;
        }
        messages.push({ role: 'tool', tool_call_id: id, content });
      }
    }
  });

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

// A plain loop of OpenAI calls in JavaScript, whose spans the program writes through LangWatch's tracer.
import { setupObservability } from 'langwatch/observability/node';
import { getLangWatchTracer } from 'langwatch';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import OpenAI from 'openai';
import { QUESTION, SCENARIO, log, run, schema, tools } from './lab.mjs';

const handle = setupObservability({ langwatch: 'disabled', serviceName: 'agent', spanProcessors: [new SimpleSpanProcessor(new OTLPTraceExporter())] });
const tracer = getLangWatchTracer('agent');
const client = new OpenAI();

const ask = (messages, offered) =>
  tracer.withActiveSpan('chat', async (span) => {
    span.setType('llm').setRequestModel('gpt-4o').setInput(messages);
    const answer = await client.chat.completions.create({ model: 'gpt-4o', messages, tools: offered });
    const { usage } = answer;
    span.setResponseModel(answer.model).setOutput(answer.choices[0].message);
    span.setMetrics({ promptTokens: usage.prompt_tokens, completionTokens: usage.completion_tokens });
    return answer.choices[0].message;
  });

const call = (name, own, args) =>
  tracer.withActiveSpan(name, async (span) => {
    span.setType('tool').setInput(args);
    const result = await own[name].run(args);
    span.setOutput(result);
    return result;
  });

const agent = (name, system, question, own) =>
  tracer.withActiveSpan(name, async (span) => {
    span.setType('agent').setInput(question);
    const offered = Object.entries(own).map(([tool, { description, parameters }]) => ({
      type: 'function', function: { name: tool, description, parameters: schema(parameters) },
    }));
    const messages = [{ role: 'system', content: system }, { role: 'user', content: question }];
    for (;;) {
      const message = await ask(messages, offered);
      messages.push(message);
      if (!message.tool_calls?.length) {
        span.setOutput(message.content);
        return message.content;
      }
      const results = await Promise.all(
        message.tool_calls.map(async ({ id, function: { name: tool, arguments: args } }) => {
          let content;
          try {
            content = await call(tool, own, JSON.parse(args));
          } catch (error) {
            content = `error: ${error.message}`;
          }
          return { role: 'tool', tool_call_id: id, content };
        }),
      );
      messages.push(...results);
    }
  });

const asTool = (name) => ({
  description: 'Ask another agent',
  parameters: { query: 'string' },
  run: async (args) => {
    log({ name, arguments: args, error: false, kind: 'agent_as_tool' });
    return agent(name, `You are the ${name}.`, args.query, tools);
  },
});
const kinds = {
  delegation: { researcher: asTool('researcher') },
  parallel_agents: { researcher: asTool('researcher'), statistician: asTool('statistician') },
};
await run(
  () => agent('assistant', 'You are the assistant.', QUESTION, kinds[SCENARIO] ?? tools),
  () => handle.shutdown(),
);

// A plain loop of OpenAI calls in JavaScript, whose functions are wrapped by Phoenix's helpers.
import { OpenAIInstrumentation } from '@arizeai/openinference-instrumentation-openai';
import { register, traceAgent, traceTool } from '@arizeai/phoenix-otel';
import OpenAI from 'openai';
import { QUESTION, SCENARIO, log, run, schema, tools } from './lab.mjs';

const instrumentation = new OpenAIInstrumentation();
const provider = register({ projectName: 'agent', url: process.env.OTEL_EXPORTER_OTLP_ENDPOINT, batch: false, instrumentations: [instrumentation] });
instrumentation.manuallyInstrument(OpenAI);
const client = new OpenAI();

const ask = async (messages, offered) => {
  const asked = { model: 'gpt-4o', messages, tools: offered };
  if (SCENARIO !== 'streaming') {
    return (await client.chat.completions.create(asked)).choices[0].message;
  }
  const message = { role: 'assistant', content: '' };
  for await (const { choices } of await client.chat.completions.create({ ...asked, stream: true, stream_options: { include_usage: true } })) {
    const delta = choices[0]?.delta ?? {};
    message.content += delta.content ?? '';
    for (const { index, ...part } of delta.tool_calls ?? []) {
      message.tool_calls ??= [];
      const call = (message.tool_calls[index] ??= { id: part.id, type: 'function', function: { name: '', arguments: '' } });
      call.function.name += part.function.name ?? '';
      call.function.arguments += part.function.arguments ?? '';
    }
  }
  return message;
};

const agent = (name, system, own) =>
  traceAgent(
    async (question) => {
      const offered = Object.entries(own).map(([tool, { description, parameters }]) => ({
        type: 'function', function: { name: tool, description, parameters: schema(parameters) },
      }));
      const traced = Object.fromEntries(Object.entries(own).map(([tool, { run: body }]) => [tool, traceTool(body, { name: tool })]));
      const messages = [{ role: 'system', content: system }, { role: 'user', content: question }];
      for (;;) {
        const message = await ask(messages, offered);
        messages.push(message);
        if (!message.tool_calls?.length) return message.content;
        const results = await Promise.all(
          message.tool_calls.map(async ({ id, function: { name: tool, arguments: args } }) => {
            let content;
            try {
              content = await traced[tool](JSON.parse(args));
            } catch (error) {
              content = `error: ${error.message}`;
            }
            return { role: 'tool', tool_call_id: id, content };
          }),
        );
        messages.push(...results);
      }
    },
    { name },
  );

const researcher = agent('researcher', 'You are the researcher.', tools);
const asTool = {
  description: 'Ask another agent',
  parameters: { query: 'string' },
  run: async (args) => {
    log({ name: 'researcher', arguments: args, error: false, kind: 'agent_as_tool' });
    return researcher(args.query);
  },
};
await run(
  () => agent('assistant', 'You are the assistant.', SCENARIO === 'delegation' ? { researcher: asTool } : tools)(QUESTION),
  () => provider.shutdown(),
);

// A plain loop of OpenAI calls in JavaScript under LangSmith's OpenTelemetry mode: its wrapped client, and its traced functions.
import OpenAI from 'openai';
import { initializeOTEL } from 'langsmith/experimental/otel/setup';
import { traceable } from 'langsmith/traceable';
import { wrapOpenAI } from 'langsmith/wrappers';
import { QUESTION, SCENARIO, agentAsTool, run, schema, tools } from './lab.mjs';

const { DEFAULT_LANGSMITH_SPAN_PROCESSOR: processor } = initializeOTEL();
const client = wrapOpenAI(new OpenAI({ maxRetries: 0 }));

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

const agent = (name, functions) => traceable(async (question) => {
  const messages = [{ role: 'system', content: `You are the ${name}.` }, { role: 'user', content: question }];
  const offered = Object.entries(functions).map(([name, { description, parameters }]) =>
    ({ type: 'function', function: { name, description, parameters: schema(parameters) } }));
  for (;;) {
    const message = await ask(messages, offered);
    messages.push(message);
    if (!message.tool_calls) return message.content;
    for (const { id, function: called } of message.tool_calls) {
      let content;
      try {
        content = await functions[called.name].run(JSON.parse(called.arguments));
      } catch (error) {
        content = `error: ${error.message}`;
      }
      messages.push({ role: 'tool', tool_call_id: id, content });
    }
  }
}, { name, run_type: 'chain' });

const traced = (name, tool) => ({ ...tool, run: traceable(tool.run, { name, run_type: 'tool' }) });
const all = Object.fromEntries(Object.entries(tools).map(([name, tool]) => [name, traced(name, tool)]));
const research = agent('researcher', all);
const researcher = traced('researcher', {
  description: 'Finds things out', parameters: { query: 'string' }, run: agentAsTool(({ query }) => research(query)),
});

await run(() => agent('assistant', SCENARIO === 'delegation' ? { researcher } : all)(QUESTION), () => processor.shutdown());
process.exit();

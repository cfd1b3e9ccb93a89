import { createRequire } from 'node:module';
import { QUESTION, SCENARIO, agentAsTool, run, tools, zodSchema } from './lab.mjs';

const require = createRequire(import.meta.url);
const { trace } = require('@opentelemetry/api');
const Openlit = require('openlit').default;
Openlit.init({ disableMetrics: true });
const { Agent, run: ask, setOpenAIAPI, tool } = require('@openai/agents');
const { z } = require('zod');

setOpenAIAPI('chat_completions');
const agent = (name, more) => new Agent({ name, instructions: `You are the ${name}.`, model: 'gpt-4o', ...more });
const all = Object.entries(tools).map(([name, { description, parameters, run }]) =>
  tool({ name, description, parameters: zodSchema(z, parameters), execute: run }),
);
const researcher = tool({
  name: 'researcher',
  description: 'Finds things out',
  parameters: z.object({ query: z.string() }),
  execute: agentAsTool(async ({ query }) => (await ask(agent('researcher', { tools: all }), query)).finalOutput),
});

await run(async () => {
  const more = {
    delegation: { tools: [researcher] },
    handoff: { handoffs: [agent('researcher', { tools: all })] },
  };
  const root = agent('assistant', more[SCENARIO] ?? { tools: all });
  const result = await ask(root, QUESTION, { stream: SCENARIO === 'streaming' });
  await result.completed;
  return result.finalOutput;
}, () => trace.getTracerProvider().getDelegate().forceFlush());
process.exit();

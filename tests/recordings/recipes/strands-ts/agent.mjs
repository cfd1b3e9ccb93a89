import { Agent, tool } from '@strands-agents/sdk';
import { OpenAIModel } from '@strands-agents/sdk/models/openai';
import { Swarm } from '@strands-agents/sdk/multiagent';
import { setupTracer } from '@strands-agents/sdk/telemetry';
import { z } from 'zod';
import { QUESTION, SCENARIO, agentAsTool, run, tools, zodSchema } from './lab.mjs';

const provider = setupTracer({ exporters: { otlp: true } });
const agent = (name, tools) => {
  const model = new OpenAIModel({ api: 'chat', modelId: 'gpt-4o', clientConfig: { maxRetries: 2 } });
  return new Agent({ id: name, name, description: name, model, tools, systemPrompt: `You are the ${name}.`, printer: false });
};
const all = Object.entries(tools).map(([name, { description, parameters, run }]) =>
  tool({ name, description, inputSchema: zodSchema(z, parameters), callback: run }),
);
const researcher = tool({
  name: 'researcher',
  description: 'Finds things out',
  inputSchema: z.object({ query: z.string() }),
  callback: agentAsTool(async ({ query }) => String(await agent('researcher', all).invoke(query))),
});

await run(async () => {
  if (SCENARIO === 'handoff') {
    const swarm = new Swarm({ nodes: [agent('assistant', []), agent('researcher', all)], start: 'assistant', maxSteps: 5 });
    return (await swarm.invoke(QUESTION)).content.map((block) => block.text).join('');
  }
  return String(await agent('assistant', SCENARIO === 'delegation' ? [researcher] : all).invoke(QUESTION));
}, () => provider.forceFlush());

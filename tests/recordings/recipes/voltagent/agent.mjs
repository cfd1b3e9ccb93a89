import { createOpenAI } from '@ai-sdk/openai';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { Agent, createTool, VoltAgentObservability } from '@voltagent/core';
import { z } from 'zod';
import { QUESTION, SCENARIO, log, run, tools, zodSchema } from './lab.mjs';

const observability = new VoltAgentObservability({
  serviceName: 'agent',
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
});
const openai = createOpenAI();
const hooks = {
  onToolStart: async ({ tool, args }) => {
    if (tool.name === 'delegate_task') {
      log({ name: tool.name, arguments: args, error: false, kind: 'agent_as_tool' });
    }
  },
};
const agent = (name, more) =>
  new Agent({ name, purpose: name, instructions: `You are the ${name}.`, model: openai.chat('gpt-4o'), observability, hooks, ...more });
const all = Object.entries(tools).map(([name, { description, parameters, run }]) =>
  createTool({ name, description, parameters: zodSchema(z, parameters), execute: run }),
);

await run(async () => {
  const root = SCENARIO === 'delegation'
    ? agent('assistant', { subAgents: [agent('researcher', { tools: all })] })
    : agent('assistant', { tools: all });
  if (SCENARIO === 'streaming') {
    return await (await root.streamText(QUESTION)).text;
  }
  return (await root.generateText(QUESTION)).text;
}, () => observability.forceFlush());
process.exit();

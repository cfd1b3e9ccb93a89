// ADK-TS (IQ AI), whose spans it writes itself.
import { AgentBuilder, AgentTool, LlmAgent, OpenAiLlm, createTool, initializeTelemetry, shutdownTelemetry } from '@iqai/adk';
import { z } from 'zod';
import { QUESTION, SCENARIO, agentAsTool, run, tools, zodSchema } from './lab.mjs';

initializeTelemetry({ appName: 'agent', otlpEndpoint: `${process.env.OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces` });

const offered = Object.entries(tools).map(([name, { description, parameters, run: fn }]) =>
  createTool({ name, description, schema: zodSchema(z, parameters), fn }),
);
const agent = (name, more) =>
  new LlmAgent({ name, description: `the ${name}`, instruction: `You are the ${name}.`, model: new OpenAiLlm('gpt-4o'), ...more });
const researcher = agent('researcher', { tools: offered });
const kinds = {
  delegation: { tools: [new AgentTool({ name: 'researcher', description: 'Ask the researcher', agent: researcher })] },
  transfer: { subAgents: [researcher] },
};
const ask = AgentTool.prototype.runAsync;
AgentTool.prototype.runAsync = function (args, context) {
  return agentAsTool((given) => ask.call(this, given, context))(args);
};
await run(
  async () => {
    const built = await AgentBuilder.create('assistant').withAgent(agent('assistant', kinds[SCENARIO] ?? { tools: offered })).build();
    const said = await built.runner.ask(QUESTION);
    // A request that fails for good becomes the agent's answer.
    if (said.startsWith('Error: ')) throw new Error(said);
    return said;
  },
  () => shutdownTelemetry(),
);

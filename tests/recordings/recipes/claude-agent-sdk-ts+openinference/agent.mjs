import * as sdk from '@anthropic-ai/claude-agent-sdk';
import { ClaudeAgentSDKInstrumentation } from '@arizeai/openinference-instrumentation-claude-agent-sdk';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { z } from 'zod';
import { QUESTION, SCENARIO, log, run, tools } from './lab.mjs';

const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] });
provider.register();
const { query } = new ClaudeAgentSDKInstrumentation({ tracerProvider: provider }).manuallyInstrument(sdk);
const shape = (parameters) => Object.fromEntries(Object.entries(parameters).map(([name, type]) => [name, z[type]()]));
const lab = sdk.createSdkMcpServer({
  name: 'lab',
  version: '1.0.0',
  tools: Object.entries(tools).map(([name, { description, parameters, run }]) =>
    sdk.tool(name, description, shape(parameters), async (args) => ({ content: [{ type: 'text', text: await run(args) }] })),
  ),
});
const asked = async ({ tool_name, tool_input }) => {
  log({ name: tool_name, arguments: tool_input, error: false, kind: 'agent_as_tool' });
  return {};
};
const names = Object.keys(tools).map((name) => `mcp__lab__${name}`);

await run(async () => {
  let result;
  const options = {
    model: 'claude-sonnet-4-5',
    systemPrompt: 'You are the assistant.',
    mcpServers: { lab },
    allowedTools: [...names, 'Agent'],
    agents: { researcher: { description: 'Finds things out', prompt: 'You are the researcher.', tools: names } },
    settingSources: [],
    hooks: { PreToolUse: [{ matcher: 'Agent', hooks: [asked] }] },
  };
  for await (const message of query({ prompt: QUESTION, options })) {
    result = message.type === 'result' ? message : result;
  }
  if (result.is_error) {
    throw new Error(JSON.stringify(result));
  }
  return result.result;
}, () => provider.forceFlush());
process.exit();

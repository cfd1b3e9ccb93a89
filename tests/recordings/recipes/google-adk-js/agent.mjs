// Google's ADK for JavaScript, whose spans it writes itself.
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { z } from 'zod';
import { QUESTION, SCENARIO, log, run, tools, zodSchema } from './lab.mjs';

process.env.GOOGLE_GEMINI_BASE_URL = process.env.MODEL_URL.replace(/\/v1$/, '');
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(new OTLPTraceExporter())] });
provider.register();
const { AgentTool, FunctionTool, Gemini, InMemoryRunner, LlmAgent } = await import('@google/adk');

const offered = Object.entries(tools).map(
  ([name, { description, parameters, run: execute }]) =>
    new FunctionTool({ name, description, parameters: zodSchema(z, parameters), execute }),
);
const agent = (name, more) =>
  new LlmAgent({
    name,
    description: `the ${name}`,
    instruction: `You are the ${name}.`,
    model: new Gemini({ model: 'gemini-2.5-flash', apiKey: 'scripted' }),
    ...more,
  });
const asTool = (name) => {
  const tool = new AgentTool({ agent: agent(name, { tools: offered }) });
  const ask = tool.runAsync.bind(tool);
  tool.runAsync = (request) => {
    log({ name, arguments: request.args, error: false, kind: 'agent_as_tool' });
    return ask(request);
  };
  return tool;
};
const kinds = {
  parallel_agents: () => ({ tools: [asTool('researcher'), asTool('statistician')] }),
  transfer: () => ({ subAgents: [agent('researcher', { tools: offered })] }),
};
await run(
  async () => {
    const runner = new InMemoryRunner({ agent: agent('assistant', (kinds[SCENARIO] ?? (() => ({ tools: offered })))()), appName: 'lab' });
    const { id: sessionId } = await runner.sessionService.createSession({ appName: 'lab', userId: 'user' });
    const newMessage = { role: 'user', parts: [{ text: QUESTION }] };
    const runConfig = SCENARIO === 'streaming' ? { streamingMode: 'sse' } : undefined;
    let text = '';
    for await (const event of runner.runAsync({ userId: 'user', sessionId, newMessage, runConfig })) {
      if (event.errorMessage) throw new Error(event.errorMessage);
      const said = (event.content?.parts ?? []).map((part) => part.text ?? '').join('');
      if (said && !event.partial) text = said;
    }
    return text;
  },
  () => provider.shutdown(),
);

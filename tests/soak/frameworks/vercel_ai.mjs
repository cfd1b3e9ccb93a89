// /// script
// dependencies = [
//     "ai@7.0.173",
//     "@ai-sdk/openai@4.0.118",
//     "@ai-sdk/otel@1.0.173",
//     "@ai-sdk/mcp@2.0.99",
//     "@arizeai/openinference-vercel@3.2.1",
//     "@modelcontextprotocol/sdk@1.32.2",
//     "@opentelemetry/api@1.9.1",
//     "@opentelemetry/exporter-trace-otlp-grpc@0.219.0",
//     "@opentelemetry/exporter-trace-otlp-http@0.219.0",
//     "@opentelemetry/exporter-trace-otlp-proto@0.219.0",
//     "@opentelemetry/sdk-trace-node@2.8.0",
//     "zod@4.6.7",
// ]
// [tool.soak]
// instrumentations = ["native", "legacy", "native,openinference", "native,grpc", "native,httpjson", "native,mcp"]
// helpers = ["tool"]
// patterns = ["given-up", "parallel", "answer", "approval"]
// ///
// An agent of the Vercel AI SDK.
import { createMCPClient } from '@ai-sdk/mcp';
import { createOpenAI } from '@ai-sdk/openai';
import { LegacyOpenTelemetry, OpenTelemetry } from '@ai-sdk/otel';
import { OpenInferenceBatchSpanProcessor } from '@arizeai/openinference-vercel';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { OTLPTraceExporter as GrpcExporter } from '@opentelemetry/exporter-trace-otlp-grpc';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { Output, ToolLoopAgent, isStepCount, registerTelemetry, tool } from 'ai';
import { z } from 'zod';

import { MAX_STEPS, MODEL, instrumentations, logged, main, signalOf, system, tools, zodSchema } from './agent_program.mjs';

const own = Object.fromEntries(
  Object.entries(tools).map(([name, { description, parameters, run }]) => [
    name,
    tool({ description, inputSchema: zodSchema(z, parameters), execute: run }),
  ]),
);

const ofServer = async () => {
  const server = new McpServer({ name: 'lab', version: '1.0.0' });
  for (const [name, { description, parameters, run }] of Object.entries(tools)) {
    const answered = async (given) => ({ content: [{ type: 'text', text: await run(given) }] });
    server.registerTool(name, { description, inputSchema: zodSchema(z, parameters).shape }, answered);
  }
  const [here, there] = InMemoryTransport.createLinkedPair();
  await server.connect(there);
  return await (await createMCPClient({ transport: here })).tools();
};

const agent = (job, name, tools, { works, ...more } = {}) =>
  new ToolLoopAgent({
    id: name,
    model: createOpenAI({ baseURL: job.url, apiKey: 'none' }).chat(MODEL),
    instructions: system(name, works),
    ...more,
    tools,
    stopWhen: isStepCount(MAX_STEPS),
    telemetry: { functionId: name },
  });

const researcher = (job, all) =>
  tool({
    description: 'Ask the researcher.',
    inputSchema: z.object({ question: z.string() }),
    execute: logged('ask_researcher', async ({ question }) => {
      const { get_weather, add_numbers } = all;
      const found = await agent(job, 'researcher', { get_weather, add_numbers }).generate({ prompt: question });
      return found.text;
    }),
  });

const streamed = async (asked, given) => {
  const result = await asked.stream(given);
  await result.consumeStream();
  const [text, content, responseMessages] = await Promise.all([result.text, result.content, result.responseMessages]);
  return { text, content, responseMessages };
};

const run = async (job) => {
  const all = instrumentations.includes('mcp') ? await ofServer() : own;
  if (job.helper === 'parallel') {
    const both = [agent(job, 'assistant', all), agent(job, 'writer', all, { works: 'beside assistant' })];
    return (await Promise.all(both.map((one) => one.generate({ prompt: job.turns[0] })))).at(-1).text;
  }
  const more = {
    tool: { ask_researcher: researcher(job, all) },
    approval: { get_weather: { ...all.get_weather, needsApproval: true } },
  };
  const form = job.helper === 'answer' ? { output: Output.object({ schema: z.object({ answer: z.number() }) }) } : {};
  const asked = agent(job, 'assistant', { ...all, ...more[job.helper] }, form);
  const messages = [];
  const given = { messages, abortSignal: signalOf(job) };
  let said = null;
  for (const content of job.turns) {
    messages.push({ role: 'user', content });
    let approvals;
    do {
      const result = job.stream ? await streamed(asked, given) : await asked.generate(given);
      messages.push(...result.responseMessages);
      said = result.text;
      approvals = result.content.filter((part) => part.type === 'tool-approval-request');
      const approved = ({ approvalId }) => ({ type: 'tool-approval-response', approvalId, approved: true });
      if (approvals.length) messages.push({ role: 'tool', content: approvals.map(approved) });
    } while (approvals.length);
  }
  return said;
};

registerTelemetry(instrumentations.includes('legacy') ? new LegacyOpenTelemetry() : new OpenTelemetry());
const processor = instrumentations.includes('openinference')
  ? (exporter) => new OpenInferenceBatchSpanProcessor({ exporter })
  : undefined;
const { OTEL_EXPORTER_OTLP_ENDPOINT: url } = process.env;
const exporters = { grpc: () => new GrpcExporter({ url }), httpjson: () => new JsonExporter() };
const exporter = instrumentations.map((name) => exporters[name]?.()).find(Boolean);
await main(run, { exporter, processor, together: 3 });

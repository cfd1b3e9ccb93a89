// /// script
// dependencies = [
//     "@anthropic-ai/claude-agent-sdk@0.3.330",
//     "@arizeai/openinference-instrumentation-claude-agent-sdk@0.3.1",
//     "@opentelemetry/api@1.9.1",
//     "@opentelemetry/exporter-trace-otlp-proto@0.219.0",
//     "@opentelemetry/sdk-trace-node@2.8.0",
//     "zod@4.6.7",
// ]
// [tool.soak]
// instrumentations = ["openinference"]
// ///
// The Claude Agent SDK, whose agent is another program, which asks the model; its tools are those of a server in this process.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import * as sdk from '@anthropic-ai/claude-agent-sdk';
import { ClaudeAgentSDKInstrumentation } from '@arizeai/openinference-instrumentation-claude-agent-sdk';
import { z } from 'zod';

import { logged, main, system, tools, zodSchema } from './agent_program.mjs';

let query;

const run = async (job) => {
  const lab = sdk.createSdkMcpServer({
    name: 'lab',
    version: '1.0.0',
    tools: Object.entries(tools).map(([name, { description, parameters, body }]) => {
      const run = logged(`mcp__lab__${name}`, body);
      return sdk.tool(name, description, zodSchema(z, parameters).shape, async (given) => ({ content: [{ type: 'text', text: await run(given) }] }));
    }),
  });
  const home = mkdtempSync(join(tmpdir(), 'soak-'));
  let result;
  for (const prompt of job.turns) {
    const options = {
      model: 'claude-sonnet-4-5',
      systemPrompt: system('claude-code'),
      mcpServers: { lab },
      tools: [],
      allowedTools: Object.keys(tools).map((name) => `mcp__lab__${name}`),
      settingSources: [],
      cwd: home,
      maxTurns: 8,
      resume: result?.session_id,
      env: {
        PATH: process.env.PATH, HOME: home, ANTHROPIC_BASE_URL: job.url.replace(/\/v1$/, ''), ANTHROPIC_API_KEY: 'none',
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', ENABLE_TOOL_SEARCH: 'false', CLAUDE_CODE_MAX_RETRIES: '2',
      },
    };
    for await (const message of query({ prompt, options })) {
      result = message.type === 'result' ? message : result;
    }
    if (result.is_error) {
      throw new Error(JSON.stringify(result));
    }
  }
  return result.result;
};

const prepare = (tracerProvider) => {
  ({ query } = new ClaudeAgentSDKInstrumentation({ tracerProvider }).manuallyInstrument(sdk));
};
await main(run, { prepare, together: 2 });
process.exit();

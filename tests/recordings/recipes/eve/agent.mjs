// Vercel's eve: an agent of files, served by `eve dev` and asked by `eve remote invoke`, with its own spans sent to an OTLP endpoint.
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { QUESTION, SCENARIO, answer, tools } from './lab.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const write = (path, text) => {
  mkdirSync(dirname(join(HERE, path)), { recursive: true });
  writeFileSync(join(HERE, path), text);
};
const toolFile = (name, { description, parameters }) => `
import { defineTool } from 'eve/tools';
import { z } from 'zod';
import { tools, zodSchema } from '../../lab.mjs';
export default defineTool({
  description: ${JSON.stringify(description)},
  inputSchema: zodSchema(z, ${JSON.stringify(parameters)}),
  execute: (input) => tools.${name}.run(input),
});
`;
const agentFile = (more) => `
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { defineAgent } from 'eve';
const scripted = createOpenAICompatible({ name: 'openai', baseURL: process.env.MODEL_URL, apiKey: 'scripted', includeUsage: true });
export default defineAgent({ model: scripted('gpt-4o'), modelContextWindowTokens: 64000, ${more} });
`;

rmSync(join(HERE, 'agent'), { recursive: true, force: true });
rmSync(join(HERE, '.eve'), { recursive: true, force: true });
write('agent/instructions.md', 'You are the assistant.');
write('agent/agent.ts', agentFile(''));
write('agent/instrumentation/local.ts', "import { disableInstrumentation } from 'eve/instrumentation';\nexport default disableInstrumentation();\n");
write('agent/instrumentation/collector.ts', `
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { otelIntegration } from 'eve/instrumentation/otel';
export default otelIntegration({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter(), { scheduledDelayMillis: 300 })] });
`);
// A tool that the model's provider would run.
write('agent/tools/web_search.ts', "import { disableTool } from 'eve/tools';\nexport default disableTool();\n");
for (const [name, one] of Object.entries(tools)) write(`agent/tools/${name}.ts`, toolFile(name, one).replaceAll('../../lab.mjs', join(HERE, 'lab.mjs')));
if (SCENARIO === 'delegation') {
  for (const [name, one] of Object.entries(tools)) {
    rmSync(join(HERE, `agent/tools/${name}.ts`));
    write(`agent/subagents/researcher/tools/${name}.ts`, toolFile(name, one).replaceAll('../../lab.mjs', join(HERE, 'lab.mjs')));
  }
  write('agent/subagents/researcher/instructions.md', 'You are the researcher.');
  write('agent/subagents/researcher/agent.ts', agentFile("description: 'Ask the researcher',"));
}

const port = await new Promise((found) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    server.close(() => found(port));
  });
});
const node = join(HERE, 'node_modules/.bin/node');
const eve = join(HERE, 'node_modules/eve/bin/eve.js');
const environment = { ...process.env, EVE_TELEMETRY_DISABLED: '1', NO_COLOR: '1' };
const server = spawn(node, [eve, 'dev', '--no-ui', '--port', String(port), '--host', '127.0.0.1', '--no-default-extensions'], { cwd: HERE, env: environment, stdio: ['ignore', 'inherit', 'inherit'], detached: true });
const url = `http://127.0.0.1:${port}`;
for (let i = 0; i < 400; i++) {
  const ready = await fetch(`${url}/eve/v1/health`).then((r) => r.ok, () => false);
  if (ready) break;
  await new Promise((done) => setTimeout(done, 250));
}
const asked = spawnSync(node, [eve, 'remote', 'invoke', '--url', url, QUESTION], { cwd: HERE, env: environment, encoding: 'utf8' });
console.log(asked.status, asked.stdout, asked.stderr);
await new Promise((done) => setTimeout(done, 1500));
process.kill(-server.pid, 'SIGTERM');
try {
  answer(JSON.parse(asked.stdout).outcome.message);
} catch (error) {
  console.error(error);
}
process.exit(asked.status);

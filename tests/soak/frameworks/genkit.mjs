// /// script
// dependencies = [
//     "genkit@1.42.0",
//     "@genkit-ai/compat-oai@1.42.0",
//     "@opentelemetry/api@1.9.0",
//     "@opentelemetry/exporter-trace-otlp-proto@0.57.2",
//     "@opentelemetry/sdk-trace-base@1.30.1",
//     "@opentelemetry/sdk-trace-node@1.30.1",
// ]
// [tool.soak]
// instrumentations = ["native"]
// helpers = ["tool"]
// patterns = ["given-up", "chain", "parallel"]
// named-agents = false
// ///
// A flow of Genkit: a model with tools, which has no name as an agent.
import { openAI } from '@genkit-ai/compat-oai/openai';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { genkit, z } from 'genkit';
import { enableTelemetry, flushTracing } from 'genkit/tracing';

import { MAX_STEPS, MODEL, logged, makeRuns, namesRun, signalOf, system, tools, zodSchema } from './agent_program.mjs';

const run = async (job) => {
  const ai = genkit({ plugins: [openAI({ apiKey: 'none', baseURL: job.url })] });
  const all = Object.entries(tools).map(([name, { description, parameters, run }]) =>
    ai.defineTool({ name, description, inputSchema: zodSchema(z, parameters), outputSchema: z.string() }, run),
  );
  const asked = (name, tools, works) => ({ model: openAI.model(MODEL), system: system(name, works), tools, maxTurns: MAX_STEPS });
  const researcher = ai.defineTool(
    { name: 'ask_researcher', description: 'Ask the researcher.', inputSchema: z.object({ question: z.string() }), outputSchema: z.string() },
    logged('ask_researcher', async ({ question }) => (await ai.generate({ ...asked('researcher', all.slice(0, 2)), prompt: question })).text),
  );
  const agent = asked('assistant', job.helper === 'tool' ? [...all, researcher] : all);
  const ask = async (given) => {
    if (!job.stream) {
      return await ai.generate(given);
    }
    const { response, stream } = ai.generateStream(given);
    for await (const _ of stream);
    return await response;
  };
  if (['chain', 'parallel'].includes(job.helper)) {
    const flow = ai.defineFlow('flow', async (prompt) => {
      const writer = asked('writer', all, job.helper === 'chain' ? 'alone' : 'beside assistant');
      const first = ai.generate({ ...agent, prompt });
      if (job.helper === 'chain') await first;
      return (await Promise.all([first, ai.generate({ ...writer, prompt })])).at(-1).text;
    });
    return await flow(job.turns[0]);
  }
  let messages = [];
  let said = null;
  for (const prompt of job.turns) {
    const answer = await ask({ ...agent, abortSignal: signalOf(job), system: messages.length ? undefined : agent.system, messages, prompt });
    [messages, said] = [answer.messages, answer.text];
  }
  return said;
};

await enableTelemetry({ spanProcessors: [namesRun, new BatchSpanProcessor(new OTLPTraceExporter())] });
await makeRuns(run, 3);
await flushTracing();
process.exit();

// /// script
// dependencies = [
//     "@ax-llm/ax@24.0.21",
//     "@opentelemetry/api@1.9.1",
//     "@opentelemetry/exporter-trace-otlp-proto@0.219.0",
//     "@opentelemetry/sdk-trace-node@2.8.0",
// ]
// [tool.soak]
// instrumentations = ["native"]
// helpers = ["tool"]
// ///
// A program of Ax with functions.
import { ai, ax, axGlobals } from '@ax-llm/ax';
import { trace } from '@opentelemetry/api';

import { MAX_STEPS, MODEL, jsonSchema, logged, main, system, tools } from './agent_program.mjs';

const all = Object.entries(tools).map(([name, { description, parameters, run }]) => ({
  name,
  description,
  parameters: jsonSchema(parameters),
  func: run,
}));

const run = async (job) => {
  const llm = ai({ name: 'openai', apiKey: 'none', apiURL: job.url, config: { model: MODEL, stream: job.stream } });
  const ask = async (name, functions, question) => {
    const program = ax('question:string -> reply:string', { description: system(name), functions, id: name, traceLabel: name });
    return (await program.forward(llm, { question }, { maxRetries: 1, maxSteps: MAX_STEPS })).reply;
  };
  const researcher = {
    name: 'ask_researcher',
    description: 'Ask the researcher.',
    parameters: jsonSchema({ question: 'string' }),
    func: logged('ask_researcher', async ({ question }) => await ask('researcher', all.slice(0, 2), question)),
  };
  let said = null;
  for (const turn of job.turns) {
    said = await ask('assistant', job.helper === 'tool' ? [...all, researcher] : all, turn);
  }
  return said;
};

await main(run, { prepare: () => { axGlobals.tracer = trace.getTracer('ax'); }, together: 3 });

// What the JavaScript agent programs share: the tools and their log, telemetry, and the command line of `agent_program.py`.
//
//     node X.mjs INSTRUMENTATIONS JOBS LOG
//     clawtrace conformance -- node X.mjs INSTRUMENTATIONS HELPERS
import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';

import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';

export const MODEL = 'gpt-4o';
export const MAX_STEPS = 8;
const [, , INSTRUMENTATIONS, JOBS, LOG] = process.argv;
const { CLAWTRACE_SCENARIO: SCENARIO, CLAWTRACE_TRUTH: TRUTH, OPENAI_BASE_URL } = process.env;
export const instrumentations = INSTRUMENTATIONS.split(',').filter(Boolean);
const atWork = new AsyncLocalStorage();
// Calls side by side start within one millisecond.
const now = () => (performance.timeOrigin + performance.now()) / 1000;

/** The system prompt of an agent; by it the model server knows who asks, and `works` as in `agent_program.py`. */
export const system = (agent, works = '') => `You are the agent ${agent}${works && `, ${works}`}. Use your tools.`;

/** What cancels the work on a job after a random time where the job is to be given up. */
export const signalOf = (job) => {
  if (job.helper !== 'given-up') return undefined;
  const times = [50, 100, 200, 400, 800];
  job.signal ??= AbortSignal.timeout(times[createHash('sha256').update(job.run).digest()[0] % times.length]);
  return job.signal;
};

const write = (record) => {
  if (!SCENARIO) appendFileSync(LOG, `${JSON.stringify({ run: atWork.getStore(), ...record })}\n`);
  else if (record.kind === 'tool') appendFileSync(TRUTH, `${JSON.stringify({ tool: record.name, arguments: record.arguments, error: record.error !== null })}\n`);
  else if (record.output !== null) appendFileSync(TRUTH, `${JSON.stringify({ answer: record.output })}\n`);
};

/** The run of a scenario of `clawtrace conformance`. */
const scenario = () => ({
  run: '', url: OPENAI_BASE_URL, turns: ['What is the weather?'], stream: SCENARIO === 'streaming', count_stream: true,
  helper: (SCENARIO === 'delegation' && JOBS?.split(',')[0]) || null,
});

/** The tool with a log of every call of it. */
export const logged = (name, body) => async (given, ...more) => {
  const start = now();
  let error = null;
  try {
    return await body(given, ...more);
  } catch (raised) {
    error = String(raised);
    throw raised;
  } finally {
    write({ kind: 'tool', name, arguments: given, start, end: now(), error });
  }
};

const FOUND = ['', 'Error: no note says so', 'word '.repeat(400), '{"notes": [], "error": null}', 'Nothing.', 'failed'];

/** Description, parameters, body and logged body (`run`) of the tools, by name. */
export const tools = {
  get_weather: {
    description: 'Return the weather of a city.',
    parameters: { city: 'string' },
    run: ({ city }) => `It is ${city.length} degrees in ${city}.`,
  },
  add_numbers: {
    description: 'Add two whole numbers.',
    parameters: { a: 'integer', b: 'integer' },
    run: ({ a, b }) => String(a + b),
  },
  search_notes: {
    description: 'Search the notes for a query, with tags.',
    parameters: { query: 'string', tags: 'strings' },
    run: ({ query }) => FOUND[createHash('sha256').update(query).digest()[0] % FOUND.length],
  },
  refund_order: {
    description: 'Refund an order.',
    parameters: { order_id: 'string' },
    run: ({ order_id }) => {
      throw new Error(`order '${order_id}' cannot be refunded`);
    },
  },
};
for (const [name, tool] of Object.entries(tools)) {
  tool.body = tool.run;
  tool.run = logged(name, tool.body);
}

/** The parameters of a tool for zod. */
export const zodSchema = (z, parameters) => {
  const kinds = { string: z.string(), integer: z.number().int(), strings: z.array(z.string()) };
  return z.object(Object.fromEntries(Object.entries(parameters).map(([name, kind]) => [name, kinds[kind]])));
};

const KINDS = { string: { type: 'string' }, integer: { type: 'integer' }, strings: { type: 'array', items: { type: 'string' } } };

/** The parameters of a tool as JSON Schema. */
export const jsonSchema = (parameters) => ({
  type: 'object',
  properties: Object.fromEntries(Object.entries(parameters).map(([name, kind]) => [name, KINDS[kind]])),
  required: Object.keys(parameters),
  additionalProperties: false,
});

/** Writes the run into each span that is started in its context. */
export const namesRun = {
  onStart: (span) => atWork.getStore() && span.setAttribute('clawtrace.run_id', atWork.getStore()),
  onEnd: () => {},
  forceFlush: async () => {},
  shutdown: async () => {},
};

/** Makes the runs of the command line, `together` at once; `run` has the conversation of one job and returns the last answer. */
export const makeRuns = async (run, together = 1) => {
  const jobs = SCENARIO ? [scenario()] : JSON.parse(readFileSync(JOBS, 'utf8'));
  const one = async (job) => {
    try {
      const again = () => {
        write({ kind: 'again' });
        return run(job);
      };
      const output = (await (job.helper === 'again' ? run(job).catch(again) : run(job))) ?? null;
      // Some frameworks end in silence when they are cancelled, and others have other names for it.
      if (job.signal?.aborted) throw new Error('cancelled');
      write({ kind: 'run', output, raised: null });
    } catch (error) {
      write({ kind: 'run', output: null, raised: job.signal?.aborted ? `TimeoutError: ${error}` : String(error) });
      if (SCENARIO) {
        console.error(error);
        process.exitCode = 1;
      }
    }
  };
  const worker = async () => {
    for (let job = jobs.shift(); job; job = jobs.shift()) {
      await atWork.run(job.run, one, job);
    }
  };
  await Promise.all(Array.from({ length: together }, worker));
};

/**
 * Makes the runs with a tracer provider that is registered before.
 *
 * `processor` makes what exports the spans with `exporter`; `prepare` is given the provider before the first run.
 */
export const main = async (run, options = {}) => {
  const { exporter = new OTLPTraceExporter(), processor = (exporter) => new BatchSpanProcessor(exporter), together = 1 } = options;
  const provider = new NodeTracerProvider({ spanProcessors: [namesRun, processor(exporter)] });
  provider.register();
  await options.prepare?.(provider);
  await makeRuns(run, together);
  await provider.shutdown();
};

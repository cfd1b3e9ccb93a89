// Effect's AI package, with its own spans; a loop of chats in which each agent is a span of Effect.
import { Chat, Tool, Toolkit } from '@effect/ai';
import { OpenAiClient, OpenAiLanguageModel } from '@effect/ai-openai';
import { NodeSdk } from '@effect/opentelemetry';
import { FetchHttpClient } from '@effect/platform';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { Effect, Layer, Redacted, Schema, Stream } from 'effect';
import { QUESTION, SCENARIO, agentAsTool, answer, tools } from './lab.mjs';

const kinds = { string: Schema.String, number: Schema.Number };
const kit = (entries) => {
  const made = entries.map(([name, { description, parameters }]) =>
    Tool.make(name, {
      description,
      parameters: Object.fromEntries(Object.entries(parameters).map(([key, type]) => [key, kinds[type]])),
      success: Schema.String,
      failure: Schema.String,
      failureMode: 'return',
    }),
  );
  const toolkit = Toolkit.make(...made);
  const handlers = Object.fromEntries(entries.map(([name, { run }]) => [name, run]));
  return { toolkit, layer: toolkit.toLayer(handlers) };
};
const effectful = ({ run, ...tool }) => ({
  ...tool,
  run: (args) => Effect.tryPromise({ try: () => run(args), catch: (error) => error.message }),
});
const all = kit(Object.entries(tools).map(([name, tool]) => [name, effectful(tool)]));

const agent = (name, questions, { toolkit, layer }) =>
  Effect.gen(function* () {
    const chat = yield* Chat.fromPrompt([{ role: 'system', content: `You are the ${name}.` }]);
    let text = '';
    for (const question of questions) {
      let prompt = question;
      for (;;) {
        let called = false;
        if (SCENARIO === 'streaming') {
          text = '';
          yield* Stream.runForEach(chat.streamText({ prompt, toolkit }), (part) =>
            Effect.sync(() => {
              called ||= part.type === 'tool-call';
              text += part.type === 'text-delta' ? part.delta : '';
            }),
          );
        } else {
          const response = yield* chat.generateText({ prompt, toolkit });
          called = response.toolCalls.length > 0;
          text = response.text;
        }
        if (!called) break;
        prompt = [];
      }
    }
    return text;
  }).pipe(Effect.provide(layer), Effect.withSpan(name, { captureStackTrace: false }));

const model = OpenAiLanguageModel.layer({ model: 'gpt-4o' });
const client = OpenAiClient.layer({ apiKey: Redacted.make('scripted'), apiUrl: process.env.MODEL_URL }).pipe(
  Layer.provide(FetchHttpClient.layer),
);
const log = agentAsTool(() => '');
const researcher = kit([
  [
    'researcher',
    {
      description: 'Finds things out',
      parameters: { query: 'string' },
      run: (args) => Effect.zipRight(Effect.promise(() => log(args)), Effect.orDie(agent('researcher', [args.query], all))),
    },
  ],
]);
const exporting = NodeSdk.layer(() => ({
  resource: { serviceName: 'agent' },
  spanProcessor: new SimpleSpanProcessor(new OTLPTraceExporter()),
}));
const questions = SCENARIO === 'two_turns' ? [QUESTION, 'And in Oslo?'] : [QUESTION];
const program = agent('assistant', questions, SCENARIO === 'delegation' ? researcher : all).pipe(
  Effect.provide(model.pipe(Layer.provideMerge(client))),
  Effect.provide(exporting),
);
await Effect.runPromise(program).then(answer, (error) => {
  console.error(error);
  process.exitCode = 1;
});

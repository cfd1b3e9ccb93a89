// A plain loop of OpenAI calls in JavaScript under Latitude: its instrumentation of the SDK, within a captured function.
import { LatitudeSpanProcessor, capture, registerLatitudeInstrumentations } from '@latitude-data/telemetry';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { context, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import OpenAI from 'openai';
import { QUESTION, SCENARIO, run, schema, tools } from './lab.mjs';

const provider = new NodeTracerProvider({
  spanProcessors: [new LatitudeSpanProcessor('none', 'weather', { exporter: new OTLPTraceExporter(), disableBatch: true })],
});
provider.register();
await registerLatitudeInstrumentations({ instrumentations: { openai: OpenAI }, tracerProvider: provider });
const client = new OpenAI({ maxRetries: 0 });

const assistant = async (question) => {
  const offered = Object.entries(tools).map(([name, { description, parameters }]) => ({
    type: 'function', function: { name, description, parameters: schema(parameters) },
  }));
  const messages = [{ role: 'system', content: 'You are the assistant.' }, { role: 'user', content: question }];
  for (;;) {
    const { choices } = await client.chat.completions.create({ model: 'gpt-4o', messages, tools: offered });
    const { message } = choices[0];
    messages.push(message);
    if (!message.tool_calls?.length) return message.content;
    for (const { id, function: { name, arguments: args } } of message.tool_calls) {
      const content = await tools[name].run(JSON.parse(args)).catch((error) => `error: ${error.message}`);
      messages.push({ role: 'tool', tool_call_id: id, content });
    }
  }
};
await run(() => capture('assistant', () => assistant(QUESTION), { sessionId: 'one' }), () => provider.shutdown());

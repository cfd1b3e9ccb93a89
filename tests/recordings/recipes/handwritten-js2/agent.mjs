// OpenAI's Responses API by hand in JavaScript: each turn of a conversation is a trace, each request a streamed one whose parts are events,
// and what was said stands in log records. Sub-agents work in parallel.
import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-proto';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { LoggerProvider, SimpleLogRecordProcessor } from '@opentelemetry/sdk-logs';
import { BasicTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { context } from '@opentelemetry/api';
import { QUESTION, SCENARIO, agentAsTool, log, run, schema, tools } from './lab.mjs';

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const resource = resourceFromAttributes({ 'service.name': 'concierge' });
const processor = new SimpleSpanProcessor(new OTLPTraceExporter());
trace.setGlobalTracerProvider(new BasicTracerProvider({ resource, spanProcessors: [processor] }));
const records = new SimpleLogRecordProcessor({ exporter: new OTLPLogExporter() });
const logger = new LoggerProvider({ resource, processors: [records] }).getLogger('concierge');
const tracer = trace.getTracer('concierge', '0.9.0');
const conversation = 'thread_01JX6';

const spanned = (name, attributes, kind, body) =>
  tracer.startActiveSpan(name, { attributes, kind }, async (span) => {
    try {
      return await body(span);
    } catch (error) {
      span.recordException(error);
      span.setStatus({ code: SpanStatusCode.ERROR, message: error.message });
      throw error;
    } finally {
      span.end();
    }
  });

const said = (name, body) => logger.emit({ eventName: name, body, attributes: { 'gen_ai.system': 'openai', 'thread.id': conversation } });

async function* events(response) {
  let text = '';
  for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
    text += part;
    for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) {
      const data = text.slice(0, end).split('\n').find((line) => line.startsWith('data: '));
      if (data && data !== 'data: [DONE]') yield JSON.parse(data.slice(6));
    }
  }
}

const respond = (agent, instructions, input, offered) =>
  spanned('responses.create', { 'openai.model': 'gpt-4o', 'openai.stream': true, 'agent.name': agent, 'thread.id': conversation }, SpanKind.CLIENT, async (span) => {
    said('gen_ai.system.message', { content: instructions });
    const last = input.at(-1);
    if (last.role === 'user') said('gen_ai.user.message', { content: last.content });
    const response = await fetch(`${process.env.OPENAI_BASE_URL}/responses`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer scripted' },
      body: JSON.stringify({ model: 'gpt-4o', instructions, input, tools: offered, stream: true }),
    });
    span.setAttribute('http.response.status_code', response.status);
    if (!response.ok) throw new Error(`${response.status} ${(await response.json()).error.message}`);
    let last_ = null;
    for await (const event of events(response)) {
      if (event.type === 'response.created') span.addEvent('response.created', { 'response.id': event.response.id });
      if (event.type === 'response.output_text.delta') span.addEvent('delta', { length: event.delta.length });
      if (event.type === 'response.completed') last_ = event.response;
    }
    span.addEvent('response.completed', {
      'response.id': last_.id,
      model: last_.model,
      input_tokens: last_.usage.input_tokens,
      output_tokens: last_.usage.output_tokens,
      total_tokens: last_.usage.total_tokens,
    });
    const calls = last_.output.filter(({ type }) => type === 'function_call');
    const text = last_.output.filter(({ type }) => type === 'message').flatMap(({ content }) => content).map(({ text }) => text).join('');
    said('gen_ai.choice', {
      index: 0,
      finish_reason: calls.length ? 'tool_calls' : 'stop',
      message: {
        ...(text ? { content: text } : {}),
        tool_calls: calls.map(({ call_id, name, arguments: text }) => ({ id: call_id, type: 'function', function: { name, arguments: text } })),
      },
    });
    return { output: last_.output, calls, text };
  });

const call = (agent, functions, { call_id, name, arguments: text }) =>
  spanned(`function_call ${name}`, { 'function.name': name, 'function.call_id': call_id, 'agent.name': agent }, SpanKind.INTERNAL, async () => {
    const output = String(await functions[name].run(JSON.parse(text)));
    said('gen_ai.tool.message', { id: call_id, content: output });
    return output;
  });

const work = (name, input, functions) =>
  spanned(`agent ${name}`, { 'agent.name': name, 'thread.id': conversation }, SpanKind.INTERNAL, async () => {
    const offered = Object.entries(functions).map(([name, { description, parameters }]) => ({ type: 'function', name, description, parameters: schema(parameters) }));
    for (;;) {
      const { output, calls, text } = await respond(name, `You are the ${name}.`, input, offered);
      input.push(...output.map(({ id, status, ...item }) => item));
      if (!calls.length) return text;
      const results = await Promise.allSettled(calls.map((one) => call(name, functions, one)));
      calls.forEach(({ call_id }, at) => {
        const { value, reason } = results[at];
        if (reason) said('gen_ai.tool.message', { id: call_id, content: `error: ${reason.message}` });
        input.push({ type: 'function_call_output', call_id, output: value ?? `error: ${reason.message}` });
      });
    }
  });

const helper = (name) => ({
  description: `Ask the ${name}`,
  parameters: { query: 'string' },
  run: (args) => {
    log({ name, arguments: args, error: false, kind: 'agent_as_tool' });
    return work(name, [{ role: 'user', content: args.query }], tools);
  },
});

const helpers = SCENARIO === 'parallel_agents' ? ['researcher', 'statistician'] : ['researcher'];
const offered = ['delegation', 'parallel_agents'].includes(SCENARIO) ? Object.fromEntries(helpers.map((name) => [name, helper(name)])) : tools;
const questions = SCENARIO === 'two_turns' ? [QUESTION, 'And in Oslo?'] : [QUESTION];

await run(async () => {
  const input = [];
  let text;
  for (const question of questions) {
    input.push({ role: 'user', content: question });
    text = await spanned('POST /threads/:id/messages', { 'http.request.method': 'POST', 'thread.id': conversation }, SpanKind.SERVER, () => work('assistant', input, offered));
  }
  return text;
}, async () => {
  await processor.forceFlush();
  await records.forceFlush();
});
process.exit();

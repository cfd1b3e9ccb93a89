// Plays a recorded run to promptfoo: sends its spans, in the trace that promptfoo asks for, and returns its answer.
import { readFileSync } from "node:fs";

export default class Recorded {
  constructor(options) {
    this.config = options.config;
  }

  id() {
    return "recorded";
  }

  async callApi(prompt, context) {
    const [, trace, parent] = context.traceparent.split("-");
    const text = readFileSync(this.config.traces, "utf8");
    const request = JSON.parse(text);
    for (const { scopeSpans } of request.resourceSpans)
      for (const { spans } of scopeSpans)
        for (const span of spans) Object.assign(span, { traceId: trace, parentSpanId: span.parentSpanId || parent });
    const sent = await fetch(`http://127.0.0.1:${this.config.port}/v1/traces`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(request),
    });
    if (!sent.ok) throw new Error(await sent.text());
    return { output: this.config.answer, cost: this.config.cost };
  }
}

// What one span holds: its facts, how it was counted, messages, arguments and result.
import type { RunDetails, Span } from "./data";
import { count, dollars, duration, pretty } from "./format";
import { CopyButton, Data, Fact, TraceText } from "./parts";
import { Said } from "./rich";
import { setQuery } from "./router";
import { KIND } from "./row";

const COUNTED: Record<string, string> = {
  call: "a call, counted once",
  wrapper: "part of another call, which it wraps",
  accounting: "repeats the usage of other spans",
  duplicate: "a second record of the same call",
  none: "no call",
};

/** Return whether a doubt is about one call. */
function concerns(doubt: RunDetails["doubts"][number], relation: string, call: { call_no: number } | undefined): boolean {
  return call != null && doubt.relation === relation && doubt.row_no === call.call_no;
}

export function SpanPanel({ span, details }: { span: Span; details: RunDetails }) {
  const messages = details.messages.filter((part) => part.span_id === span.span_id);
  const tool = details.tool_calls.find((call) => call.span_id === span.span_id);
  const model = details.model_calls.find((call) => call.span_id === span.span_id);
  const asked = details.tool_requests.filter((one) => one.span_id === span.span_id);
  const open = details.doubts.filter((one) => one.span_id === span.span_id || concerns(one, "tool_calls", tool) || concerns(one, "llm_calls", model));
  const command = tool && details.commands.find((one) => one.tool_call_no === tool.call_no);
  const all = { ...span, model_call: model, tool_call: tool, command, tool_requests: asked, messages, doubts: open };
  return (
    <div class="panel" aria-live="polite">
      <div class="tools">
        <h2><span class={`kind ${span.kind}`}>{KIND[span.kind] ?? span.kind}</span> <Data>{span.name}</Data></h2>
        {(model ?? tool) && <button type="button" class="quiet" onClick={() => setQuery({ view: "talk" })}>in the conversation</button>}
        <CopyButton label="the span as JSON" name="copy as JSON" text={() => JSON.stringify(all, null, 2)} />
        <CopyButton label="a link to the span" name="copy link" text={() => location.href} />
        <button type="button" class="quiet" onClick={() => setQuery({ span: null })}>close</button>
      </div>
      {open.map((one, index) => (
        <p key={index} class="note">{one.column_name == null ? "In doubt" : `Unknown ${one.column_name}`}: <Said>{one.because}</Said></p>
      ))}
      {asked.map((one) => (
        <p key={one.request_no} class="note">Asked for, not run ({one.reason}): <Data>{one.name ?? "a tool without a name"}</Data></p>
      ))}
      {span.error != null && <TraceText label="error" text={span.error} />}
      <dl class="facts">
        <Fact name="duration">{span.ended ? duration(span.duration_us == null ? null : span.duration_us / 1000) : "never ended"}</Fact>
        {span.model && <Fact name="model"><Data>{span.model}</Data></Fact>}
        {(span.input_tokens != null || span.output_tokens != null) && (
          <Fact name="tokens in → out">{count(span.input_tokens)} → {count(span.output_tokens)}</Fact>
        )}
        {model?.cache_read_tokens != null && <Fact name="from cache">{count(model.cache_read_tokens)}</Fact>}
        {model?.reasoning_tokens != null && <Fact name="reasoning">{count(model.reasoning_tokens)}</Fact>}
        {(model?.cost_usd ?? span.cost_usd) != null && <Fact name="cost">{dollars(model?.cost_usd ?? span.cost_usd)}</Fact>}
        {model?.finish_reason && <Fact name="finish reason"><Data>{model.finish_reason}</Data></Fact>}
        {model && model.attempts != null && model.attempts > 1 && <Fact name="attempts">{model.attempts}</Fact>}
        {(model ?? tool) && <Fact name="outcome">{(model ?? tool)!.outcome ?? "unknown"}</Fact>}
        {command && <Fact name="exit code">{command.exit_code ?? "?"}</Fact>}
        {span.turn != null && <Fact name="turn">{span.turn}</Fact>}
        <Fact name="counted as">{COUNTED[span.counted_as] ?? span.counted_as}{span.counted_by && <> (rule <code>{span.counted_by}</code>)</>}</Fact>
        <Fact name="read by">{span.dialect}</Fact>
        {span.scope && <Fact name="scope"><Data>{span.scope}</Data></Fact>}
        {span.service && <Fact name="service"><Data>{span.service}</Data></Fact>}
        <Fact name="span id"><code>{span.span_id}</code></Fact>
      </dl>
      {tool && (
        <>
          <h3>Arguments</h3>
          <TraceText label="arguments" text={pretty(tool.arguments)} />
          <h3>Result</h3>
          <TraceText label="result" text={pretty(tool.result)} />
          {tool.error && <><h3>Error</h3><TraceText label="error of the tool" text={tool.error} /></>}
        </>
      )}
      {["input", "output"].map((direction) => {
        const parts = messages.filter((part) => part.direction === direction);
        return parts.length > 0 && (
          <div key={direction}>
            <h3>{direction === "input" ? "Messages sent" : "Answer"}</h3>
            {parts.map((part, index) => (
              <div key={index} class={`message ${part.role ?? ""}`}>
                <span class="dim">{part.role ?? "?"}{part.type !== "text" && ` · ${part.type}`}{part.name && ` · ${part.name}`}</span>
                <TraceText label={`${part.role} message`} text={part.type === "text" ? (part.text ?? "") : pretty(part.text)} most={600} />
              </div>
            ))}
          </div>
        );
      })}
      {!tool && !messages.length && <p class="dim">No message is recorded on this span.</p>}
    </div>
  );
}

// A run as a chat: what was said, asked for and returned, with tokens, cost and time in the margin.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { RunDetails } from "./data";
import { amount, count, dollars, duration, pretty } from "./format";
import { Data, TraceText } from "./parts";
import { Found, LongMarkdown, Said } from "./rich";
import { setQuery } from "./router";
import { type Bubble, bubblesOf } from "./talk";

const PAGE = 150;
const INLINE = 100;

interface Shown {
  details: RunDetails;
  marked: Set<string>;
  chosen: string | null;
  doubts: Map<string, string>;
}

export function Conversation({ details, marked, chosen, doubts }: Shown) {
  const bubbles = useMemo(() => bubblesOf(details), [details]);
  const at = (fits: (span: string) => boolean) => bubbles.findIndex((one) => one.span && !one.given && fits(one.span.span_id));
  const chosenAt = chosen ? at((span) => span === chosen) : -1;
  const target = chosenAt >= 0 ? chosenAt : at((span) => marked.has(span));
  const [from, setFrom] = useState(0);
  const list = useRef<HTMLOListElement>(null);
  const first = Math.max(0, Math.min(from, bubbles.length - 1));
  useEffect(() => {
    if (target < 0) return;
    if (target < first || target >= first + PAGE) setFrom(Math.max(0, target - 20));
    const shown = requestAnimationFrame(() => list.current?.querySelector(`[data-bubble="${target}"]`)?.scrollIntoView({ block: "nearest" }));
    return () => cancelAnimationFrame(shown);
  }, [target]);
  if (!bubbles.length) return <p class="dim">No model call and no tool call is recorded.</p>;
  return (
    <>
      {!details.messages.length && <p class="note">The messages of this run were not recorded.</p>}
      {first > 0 && <button type="button" class="quiet" onClick={() => setFrom(Math.max(0, first - PAGE))}>{amount(first, "entry", "entries")} before</button>}
      <ol class="talk" ref={list}>
        {bubbles.slice(first, first + PAGE).map((one, index) => (
          <Entry
            key={one.key} bubble={one} before={bubbles[first + index - 1]} place={first + index} chosen={first + index === chosenAt}
            marked={one.span !== null && !one.given && marked.has(one.span.span_id)}
            doubt={one.span && !one.given ? doubts.get(one.span.span_id) : undefined}
          />
        ))}
      </ol>
      {first + PAGE < bubbles.length && (
        <button type="button" class="quiet" onClick={() => setFrom(first + PAGE)}>{amount(bubbles.length - first - PAGE, "entry", "entries")} after</button>
      )}
    </>
  );
}

interface EntryProps {
  bubble: Bubble;
  before: Bubble | undefined;
  place: number;
  chosen: boolean;
  marked: boolean;
  doubt: string | undefined;
}

function Entry({ bubble, before, place, chosen, marked, doubt }: EntryProps) {
  const { kind, span, agent, depth, call, turn } = bubble;
  const failed = call ? call.outcome !== "ok" && call.outcome != null : span?.error != null && kind === "model" && !bubble.given;
  const classes = ["said", kind, chosen && "chosen", marked && "marked", doubt && "doubt", failed && "failed"];
  return (
    <>
      {turn != null && before && before.turn != null && turn > before.turn && <li class="turn">Turn {turn}</li>}
      {agent && agent !== before?.agent && <li class="speaker" style={{ marginLeft: `${Math.min(depth, 8) * 1.5}rem` }}><Data>{agent}</Data></li>}
      <li class={classes.filter(Boolean).join(" ")} style={{ marginLeft: `${Math.min(depth, 8) * 1.5}rem` }} data-bubble={place}>
        <div class="body">
          <div class="who">
            {span ? (
              <button type="button" class="link" onClick={() => setQuery({ view: null, span: span.span_id })}>{call ? <Data>{call.name ?? "a tool"}</Data> : kind}</button>
            ) : call ? <Data>{call.name ?? "a tool"}</Data> : kind}
            {call && <span class={failed ? "fail" : "dim"}> {call.outcome ?? "outcome unknown"}</span>}
          </div>
          {doubt && <p class="note">In doubt: <Said>{doubt}</Said></p>}
          {bubble.parts.map((part, index) => <Piece key={index} part={part} most={kind === "system" ? 300 : 1500} />)}
          {bubble.asked.length > 0 && <p class="dim">asks for {bubble.asked.map((name, index) => <>{index > 0 && ", "}<code><Data>{name}</Data></code></>)}</p>}
          {kind === "model" && !bubble.parts.length && !bubble.asked.length && !span?.error && <p class="dim">What it answered is not recorded.</p>}
          {failed && !call && <TraceText label="error" text={span!.error!} />}
          {call && <Folded name="arguments" text={call.arguments} />}
          {call && <Folded name="result" text={call.result} />}
          {call?.error && <TraceText label="error of the tool" text={call.error} />}
        </div>
        <Margin bubble={bubble} />
      </li>
    </>
  );
}

function Margin({ bubble: { span, given, call } }: { bubble: Bubble }) {
  if (!span || given) return <div class="margin" />;
  return (
    <div class="margin dim">
      {span.start_us != null && <div>at {duration(span.start_us / 1000)}</div>}
      <div>{span.ended ? duration(span.duration_us == null ? null : span.duration_us / 1000) : "never ended"}</div>
      {!call && (span.input_tokens != null || span.output_tokens != null) && <div>{count(span.input_tokens)} → {count(span.output_tokens)} tokens</div>}
      {!call && span.cost_usd != null && <div>{dollars(span.cost_usd)}</div>}
    </div>
  );
}

function Piece({ part, most }: { part: Bubble["parts"][number]; most: number }) {
  const { type, text, name } = part;
  if (type === "text") return /^\s*[[{]/.test(text ?? "") ? <TraceText label="message" text={pretty(text)} /> : <LongMarkdown text={text ?? ""} most={most} />;
  if (type === "tool_call") return <Folded name={`asks for ${name ?? "a tool"}, arguments`} text={text} />;
  return <Folded name={type === "tool_call_response" ? `result of ${name ?? "a tool"}` : (type ?? "part")} text={text} />;
}

/** A short text in a line; a longer one folded, with its size. */
function Folded({ name, text }: { name: string; text: string | null }) {
  if (text == null) return <p class="dim">{name} not recorded</p>;
  if (text.length <= INLINE && !text.includes("\n")) return <p class="short"><span class="dim">{name}</span> <code><Found>{text}</Found></code></p>;
  return (
    <details>
      <summary><span class="dim">{name}, {amount(text.length, "character")}</span> <code><Found>{`${text.slice(0, 70).replace(/\s+/g, " ")} …`}</Found></code></summary>
      <TraceText label={name} text={pretty(text)} />
    </details>
  );
}

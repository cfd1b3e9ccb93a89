// The spans of a run along time. Only the rows in sight are in the document, so that 10 000 spans scroll.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { RunDetails, Span } from "./data";
import { amount, count, dollars, duration, plain } from "./format";

const ROW = 26;
const MOST_ROWS = 22;
const AHEAD = 12;
const LANES = 8;

export const KIND: Record<string, string> = {
  llm: "model", tool: "tool", agent: "agent", chain: "chain", retrieval: "retrieval", embedding: "embedding",
  guardrail: "guardrail", evaluator: "evaluator", infra: "infra", other: "other",
};

interface Shown {
  details: RunDetails;
  marked: Set<string>;
  chosen: string | null;
  choose: (span: string | null) => void;
}

/** Return for each span the number of the agent activation that it belongs to: its own, or that of the nearest ancestor. */
function lanesOf(details: RunDetails): Map<string, number> {
  const activation = new Map(details.agents.flatMap((one) => (one.span_id ? [[one.span_id, one.activation_no] as const] : [])));
  const lanes = new Map<string, number>();
  for (const span of details.spans) {
    const own = activation.get(span.span_id) ?? (span.parent_span_id ? lanes.get(span.parent_span_id) : undefined);
    if (own !== undefined) lanes.set(span.span_id, own);
  }
  return lanes;
}

export function Waterfall({ details, marked, chosen, choose }: Shown) {
  const [top, setTop] = useState(0);
  const [closed, setClosed] = useState<Set<string>>(new Set());
  const [calls, setCalls] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const lanes = useMemo(() => lanesOf(details), [details]);
  const spans = useMemo(() => visible(details.spans, closed, calls), [details, closed, calls]);
  const parents = useMemo(() => new Set(details.spans.map((span) => span.parent_span_id)), [details]);
  const whole = useMemo(
    () => Math.max(1, ...details.spans.map((span) => (span.start_us ?? 0) + (span.duration_us ?? 0))),
    [details],
  );
  const place = spans.findIndex((span) => span.span_id === chosen);
  const firstMarked = spans.findIndex((span) => marked.has(span.span_id));
  const marks = [...marked].join(" ");

  const reveal = (index: number) => {
    const element = box.current;
    if (!element || index < 0) return;
    if (index * ROW < element.scrollTop || (index + 1) * ROW > element.scrollTop + element.clientHeight) {
      element.scrollTop = index * ROW - element.clientHeight / 2;
    }
  };
  useEffect(() => reveal(firstMarked), [marks]);
  useEffect(() => reveal(place), [chosen]);

  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: 15, PageUp: -15, Home: -spans.length, End: spans.length }[event.key];
    const span = spans[place];
    if (step !== undefined) choose(spans[Math.max(0, Math.min(spans.length - 1, place + step))]?.span_id ?? null);
    else if (event.key === "Escape") choose(null);
    else if (span && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
      if ((event.key === "ArrowLeft") !== closed.has(span.span_id)) toggle(span);
    } else return;
    event.preventDefault();
  };
  const toggle = (span: Span) => {
    const next = new Set(closed);
    if (!next.delete(span.span_id)) next.add(span.span_id);
    setClosed(next);
  };

  const first = Math.max(0, Math.floor(top / ROW) - AHEAD);
  const rows = spans.slice(first, first + MOST_ROWS + 2 * AHEAD);
  const height = Math.min(spans.length, MOST_ROWS) * ROW;
  const agents = details.agents.filter((one) => one.name);
  return (
    <div class="waterfall">
      <div class="tools">
        <h2>Trace</h2>
        <label><input type="checkbox" checked={calls} onChange={() => setCalls(!calls)} /> calls and agents only</label>
        <span class="dim">{amount(spans.length, "span")} over {duration(whole / 1000)}</span>
        <span class="legend">
          {agents.slice(0, 8).map((one) => (
            <span key={one.activation_no}><i class={`c${one.activation_no % LANES}`} /> {plain(one.name!)}</span>
          ))}
        </span>
      </div>
      <div class="axis" aria-hidden="true">
        {[0, 0.25, 0.5, 0.75, 1].map((part) => <span key={part} style={{ left: `${part * 100}%` }}>{duration((part * whole) / 1000)}</span>)}
      </div>
      <div
        class="rows" ref={box} role="tree" tabIndex={0} aria-label="Spans" style={{ height: `${height}px` }}
        aria-activedescendant={place >= first && place < first + rows.length ? `span-${place}` : undefined}
        onKeyDown={onKey} onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      >
        <div class="space" role="presentation" style={{ height: `${spans.length * ROW}px` }}>
          {rows.map((span, index) => (
            <Row
              key={span.span_id} span={span} index={first + index} size={spans.length} lane={lanes.get(span.span_id)} whole={whole}
              marked={marked.has(span.span_id)} chosen={span.span_id === chosen} choose={choose} toggle={toggle}
              open={parents.has(span.span_id) ? !closed.has(span.span_id) : null}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

function visible(spans: Span[], closed: Set<string>, calls: boolean): Span[] {
  const found: Span[] = [];
  let under: number | null = null;
  for (const span of spans) {
    if (under !== null && span.depth > under) continue;
    under = closed.has(span.span_id) ? span.depth : null;
    if (!calls || span.counted_as === "call" || span.kind === "agent") found.push(span);
  }
  return found;
}

interface RowProps {
  span: Span;
  index: number;
  size: number;
  lane: number | undefined;
  whole: number;
  marked: boolean;
  chosen: boolean;
  open: boolean | null;
  choose: (span: string | null) => void;
  toggle: (span: Span) => void;
}

function Row({ span, index, size, lane, whole, marked, chosen, open, choose, toggle }: RowProps) {
  const left = ((span.start_us ?? 0) / whole) * 100;
  const width = Math.max(0.15, ((span.duration_us ?? 0) / whole) * 100);
  const tokens = span.input_tokens != null || span.output_tokens != null ? `${count(span.input_tokens)}→${count(span.output_tokens)}` : "";
  const label = left + width < 85 ? { left: `${left + width + 0.5}%` } : left > 15 ? { right: `${100.5 - left}%` } : null;
  const classes = ["row", marked && "marked", chosen && "chosen", span.error != null && "failed", span.counted_as !== "call" && "aside"];
  return (
    <div
      id={`span-${index}`} role="treeitem" aria-level={span.depth + 1} aria-setsize={size} aria-posinset={index + 1}
      aria-selected={chosen} aria-expanded={open ?? undefined} class={classes.filter(Boolean).join(" ")}
      style={{ top: `${index * ROW}px`, height: `${ROW}px` }} onClick={() => choose(chosen ? null : span.span_id)}
    >
      <span class="name" style={{ paddingLeft: `${Math.min(span.depth, 24) * 12}px` }}>
        <span
          class="fold" aria-hidden="true"
          onClick={(event) => {
            event.stopPropagation();
            if (open !== null) toggle(span);
          }}
        >
          {open === null ? "" : open ? "▾" : "▸"}
        </span>
        <span class={`kind ${span.kind}`}>{KIND[span.kind] ?? span.kind}</span>
        <bdi>{plain(span.name)}</bdi>
        {span.error != null && <span class="fail"> ✗</span>}
      </span>
      <span class="numbers">{tokens}{span.cost_usd != null && ` ${dollars(span.cost_usd)}`}</span>
      <span class="track">
        {span.start_us != null && (
          <span
            class={`duration ${lane === undefined ? "none" : `c${lane % LANES}`} ${span.ended ? "" : "open"}`}
            style={{ left: `${Math.min(left, 99.8)}%`, width: `${Math.min(width, 100 - left)}%` }}
          />
        )}
        {label && (
          <span class="time" style={label}>
            {span.ended ? duration(span.duration_us == null ? null : span.duration_us / 1000) : "never ended"}
          </span>
        )}
      </span>
    </div>
  );
}

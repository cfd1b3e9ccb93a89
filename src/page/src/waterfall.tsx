// The spans of a run along time. Only the rows in sight are in the document, so that 10 000 spans scroll.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { RunDetails, Span } from "./data";
import { type Wanted, ONLY, criticalPath, useKept } from "./find";
import { amount, count, duration, plain } from "./format";
import { Lanes } from "./lanes";
import { setQuery } from "./router";
import { KIND, LANES, ROW, Row, lasted } from "./row";
import { Said } from "./rich";
import { Strip } from "./strip";
import { type View, framing, moved, ticks, zoomed } from "./timeline";

const MOST_ROWS = 22;
/** Spans up to which a run is shown whole, also where a verdict is chosen. */
const SHORT = 100;
const MOST_PRINTED = 1000;
const AHEAD = 14;
const ZOOM = 1.6;
const DRAG_PX = 4;

interface Shown {
  details: RunDetails;
  /** The spans that decided the chosen verdict, the most telling first. */
  marked: Set<string>;
  /** The spans that have the searched text. */
  hits: string[];
  chosen: string | null;
  choose: (span: string | null) => void;
  wanted: Wanted;
  doubts: Map<string, string>;
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

/** Return the number of each agent's colour, in the order in which they come. */
function coloursOf(details: RunDetails): Map<string, number> {
  return new Map([...new Set(details.agents.flatMap((one) => one.name ?? []))].map((name, index) => [name, index]));
}

export function Waterfall({ details, marked, hits, chosen, choose, wanted, doubts }: Shown) {
  const [top, setTop] = useState(0);
  const [closed, setClosed] = useState<Set<string>>(new Set());
  const [calls, setCalls] = useState(false);
  const [part, setPart] = useState<View | null>(null);
  const [hovered, setHovered] = useState<number | null>(null);
  const printing = usePrinting();
  const box = useRef<HTMLDivElement>(null);
  const drag = useRef<{ x: number; view: View; moved: boolean } | null>(null);
  const lanes = useMemo(() => lanesOf(details), [details]);
  const colours = useMemo(() => coloursOf(details), [details]);
  const names = useMemo(() => new Map(details.agents.map((one) => [one.activation_no, one.name ?? ""])), [details]);
  const agentOf = (span: Span) => names.get(lanes.get(span.span_id) ?? -1) ?? "";
  const path = useMemo(() => criticalPath(details), [details]);
  const kept = useKept(details, wanted, doubts, path, agentOf);
  const found = useMemo(() => new Set(hits), [hits]);
  const spans = useMemo(() => visible(details.spans, closed, calls, kept), [details, closed, calls, kept]);
  const parents = useMemo(() => new Set(details.spans.map((span) => span.parent_span_id)), [details]);
  const whole = useMemo(
    () => details.spans.reduce((most, span) => Math.max(most, (span.start_us ?? 0) + (span.duration_us ?? 0)), 1),
    [details],
  );
  const view = part ?? { from: 0, to: whole };
  const marks = [...marked].join(" ");
  const rowOf = useMemo(() => new Map(spans.map((span, index) => [span.span_id, index])), [spans]);
  const place = rowOf.get(chosen ?? "") ?? -1;
  const firstMarked = rowOf.get([...marked].find((span) => rowOf.has(span)) ?? "") ?? -1;

  const reveal = (index: number) => {
    const element = box.current;
    if (!element || index < 0) return;
    if (index * ROW < element.scrollTop || (index + 1) * ROW > element.scrollTop + element.clientHeight) {
      element.scrollTop = index * ROW - element.clientHeight / 2;
    }
  };
  useEffect(() => {
    reveal(firstMarked);
    const culprit = spans[firstMarked];
    if (culprit) setPart(spans.length > SHORT ? framing(culprit, whole, true) : null);
  }, [marks]);
  useEffect(() => {
    if (chosen && place < 0 && closed.size) setClosed(new Set());
    reveal(place);
    const { start_us: start, duration_us: length } = spans[place] ?? {};
    if (part && start != null && (start > part.to || start + (length ?? 0) < part.from)) {
      setPart(moved({ from: start - (part.to - part.from) / 2, to: start + (part.to - part.from) / 2 }, 0, whole));
    }
  }, [chosen, place < 0]);

  const toggle = (span: Span) => {
    const next = new Set(closed);
    if (!next.delete(span.span_id)) next.add(span.span_id);
    setClosed(next);
  };
  const enlarge = (factor: number) => {
    const span = spans[place];
    const middle = span?.start_us == null ? null : span.start_us + (span.duration_us ?? 0) / 2;
    const inside = middle !== null && middle >= view.from && middle <= view.to;
    setPart(zoomed(view, factor, inside ? middle : (view.from + view.to) / 2, whole));
  };
  const onKey = (event: KeyboardEvent) => {
    const { key } = event;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: 15, PageUp: -15, Home: -spans.length, End: spans.length }[key];
    const span = spans[place];
    const sideways = key === "ArrowLeft" || key === "ArrowRight";
    if (step !== undefined) choose(spans[Math.max(0, Math.min(spans.length - 1, place + step))]?.span_id ?? null);
    else if (key === "Escape") choose(null);
    else if (sideways && event.shiftKey) setPart(moved(view, key === "ArrowLeft" ? -0.25 : 0.25, whole));
    else if (span && sideways) {
      if ((key === "ArrowLeft") !== closed.has(span.span_id)) toggle(span);
    } else if (key === "+" || key === "=") enlarge(ZOOM);
    else if (key === "-") enlarge(1 / ZOOM);
    else if (key === "0") setPart(null);
    else if (key === "f" && span) setPart(framing(span, whole, false));
    else return;
    event.preventDefault();
  };

  /** The part of the time axis that a pixel's column stands for. */
  const track = () => box.current!.querySelector(".track")!.getBoundingClientRect();
  const onWheel = (event: WheelEvent) => {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.shiftKey ? event.deltaY : 0;
    const { left, width } = track();
    if (event.ctrlKey || event.metaKey) {
      const at = view.from + ((event.clientX - left) / width) * (view.to - view.from);
      setPart(zoomed(view, event.deltaY < 0 ? 1.25 : 1 / 1.25, at, whole));
    } else if (sideways && part) setPart(moved(view, sideways / width, whole));
    else return;
    event.preventDefault();
  };
  const onDrag = (event: PointerEvent) => {
    const from = drag.current;
    if (!from || (!from.moved && Math.abs(event.clientX - from.x) < DRAG_PX)) return;
    if (!from.moved) box.current!.setPointerCapture(event.pointerId);
    from.moved = true;
    setPart(moved(from.view, (from.x - event.clientX) / track().width, whole));
  };
  const rowAt = (event: Event) => {
    const row = (event.target as Element).closest("[data-row]");
    return row ? Number(row.getAttribute("data-row")) : null;
  };
  const onClick = (event: MouseEvent) => {
    const dragged = drag.current?.moved;
    drag.current = null;
    const span = dragged ? undefined : spans[rowAt(event) ?? -1];
    if (span) choose(span.span_id === chosen ? null : span.span_id);
  };

  const first = printing ? Math.max(0, Math.min((place < 0 ? firstMarked : place) - AHEAD, spans.length - MOST_PRINTED)) : Math.max(0, Math.floor(top / ROW) - AHEAD);
  const inSight = Math.ceil((box.current?.clientHeight ?? MOST_ROWS * ROW) / ROW) + 2 * AHEAD;
  const rows = spans.slice(first, printing ? first + MOST_PRINTED : first + inSight);
  const told = spans[hovered ?? place];
  const shownRows = printing ? rows.length : Math.min(spans.length, MOST_ROWS);
  return (
    <div class="waterfall">
      <div class="tools">
        <label><input type="checkbox" checked={calls} onChange={() => setCalls(!calls)} /> calls and agents only</label>
        <Filters details={details} shown={spans.length} wanted={wanted} agents={[...colours.keys()]} />
        <span class="zoom">
          <button type="button" class="quiet" aria-label="Reduce the time" disabled={!part} onClick={() => enlarge(1 / ZOOM)}>−</button>
          <button type="button" class="quiet" aria-label="Enlarge the time" onClick={() => enlarge(ZOOM)}>+</button>
          <button type="button" class="quiet" disabled={!part} onClick={() => setPart(null)}>whole run</button>
        </span>
        <span class="legend">
          {[...colours].slice(0, LANES).map(([name, colour]) => <span key={name}><i class={`c${colour % LANES}`} /> {plain(name)}</span>)}
          {colours.size > LANES && <span>and {amount(colours.size - LANES, "more agent")}</span>}
          {path.size < details.spans.length && <span><i class="critical" /> critical path</span>}
          {doubts.size > 0 && <span><i class="hatched" /> in doubt</span>}
        </span>
      </div>
      <div class="over">
        <div class="beside-names">
          <Strip details={details} whole={whole} view={view} marked={marked} show={setPart} />
          <Lanes details={details} view={view} marked={marked} chosen={chosen} choose={choose} />
          <div class="axis" aria-hidden="true">
            {ticks(view, innerWidth < 600 ? 3.5 : 6).map(({ at, text }) => {
              const left = ((at - view.from) / (view.to - view.from)) * 100;
              return <span key={at} class={left < 4 ? "first" : left > 94 ? "last" : ""} style={{ left: `${left}%` }}>{text}</span>;
            })}
          </div>
        </div>
      </div>
      <div
        class={part ? "rows enlarged" : "rows"} ref={box} role="tree" tabIndex={0} aria-label="Spans" style={{ height: `${shownRows * ROW}px` }}
        aria-activedescendant={place >= first && place < first + rows.length ? `span-${place}` : undefined}
        onKeyDown={onKey} onScroll={(event) => setTop(event.currentTarget.scrollTop)} onWheel={onWheel} onClick={onClick}
        onPointerDown={(event) => {
          const on = event.button === 0 && event.pointerType !== "touch" && part && (event.target as Element).closest(".track");
          drag.current = on ? { x: event.clientX, view, moved: false } : null;
        }}
        onPointerMove={onDrag} onMouseOver={(event) => setHovered(rowAt(event))} onMouseLeave={() => setHovered(null)}
      >
        <div class="space" role="presentation" style={printing ? { height: `${rows.length * ROW}px`, marginTop: `${-first * ROW}px` } : { height: `${spans.length * ROW}px` }}>
          {rows.map((span, index) => (
            <Row
              key={span.span_id} span={span} index={first + index} size={spans.length} lane={colours.get(agentOf(span))} view={view}
              critical={path.size < details.spans.length && path.has(span.span_id)} marked={marked.has(span.span_id)} hit={found.has(span.span_id)} chosen={span.span_id === chosen} toggle={toggle}
              doubt={doubts.get(span.span_id)} open={parents.has(span.span_id) ? !closed.has(span.span_id) : null}
            />
          ))}
        </div>
      </div>
      {!spans.length && <p class="dim">No span passes the filters.</p>}
      <p class="told dim">
        {told && <><bdi>{plain(told.name)}</bdi>, {told.start_us == null ? "start unknown" : `from ${duration(told.start_us / 1000)}`}, {lasted(told)}</>}
        {told && doubts.has(told.span_id) && <span class="note"> In doubt: <Said>{doubts.get(told.span_id)!}</Said></span>}
      </p>
      {printing && spans.length > rows.length && <p>{amount(rows.length, "span")} of {count(spans.length)}, from the {count(first + 1)}th on.</p>}
    </div>
  );
}

function Filters({ details, shown, wanted, agents }: { details: RunDetails; shown: number; wanted: Wanted; agents: string[] }) {
  const kinds = useMemo(() => [...new Set(details.spans.map((span) => span.kind))], [details]);
  const choices: [string, string, [string, string][]][] = [
    ["kind", wanted.kind, kinds.map((kind) => [kind, KIND[kind] ?? kind])],
    ["agent", wanted.agent, agents.map((name) => [name, name])],
    ["only", wanted.only, Object.entries(ONLY)],
  ];
  return (
    <>
      {choices.filter(([, , of]) => of.length > 1).map(([name, value, of]) => (
        <select key={name} aria-label={name === "only" ? "status" : name} value={value} onChange={(event) => setQuery({ [name]: event.currentTarget.value })}>
          <option value="">{name === "only" ? "any status" : `all ${name}s`}</option>
          {of.map(([id, title]) => <option key={id} value={id}>{plain(title)}</option>)}
        </select>
      ))}
      <span class="dim">
        {shown < details.spans.length ? `${count(shown)} of ` : ""}{amount(details.spans.length, "span")}
      </span>
    </>
  );
}

/** Whether the page is being printed: then rows are there that are not in sight. */
function usePrinting(): boolean {
  const [printing, setPrinting] = useState(false);
  useEffect(() => {
    const media = matchMedia("print");
    const changed = () => setPrinting(media.matches);
    media.addEventListener("change", changed);
    return () => media.removeEventListener("change", changed);
  }, []);
  return printing;
}

function visible(spans: Span[], closed: Set<string>, calls: boolean, kept: Set<string> | null): Span[] {
  const found: Span[] = [];
  let under: number | null = null;
  for (const span of spans) {
    if (under !== null && span.depth > under) continue;
    under = closed.has(span.span_id) ? span.depth : null;
    if ((!calls || span.counted_as === "call" || span.kind === "agent") && (kept?.has(span.span_id) ?? true)) found.push(span);
  }
  return found;
}

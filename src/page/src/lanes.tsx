// Calls that ran at the same time, in lanes: each in the first lane that is free when it starts. Nothing where none did.
import { useMemo } from "preact/hooks";
import type { RunDetails, Span } from "./data";
import type { View } from "./timeline";

const MOST = 8;
const WIDE = 1000;
const LANE = 10;
/** Least width of a bar, and the gap that is seen between two, in parts of `WIDE`. */
const THIN = 1.5;

const endOf = (span: Span) => span.start_us! + (span.duration_us ?? 0);

/** Return the calls in which no other call lies, in lanes; calls that no lane has room for are in the last one. */
function lanesOf({ spans }: RunDetails): Span[][] {
  const calls = spans.filter((one) => one.counted_as === "call" && (one.kind === "llm" || one.kind === "tool") && one.start_us != null);
  const parents = new Map(spans.map((one) => [one.span_id, one.parent_span_id]));
  const outer = new Set<string>();
  for (const call of calls) {
    for (let above = parents.get(call.span_id); above && !outer.has(above); above = parents.get(above)) outer.add(above);
  }
  const lanes: Span[][] = [];
  for (const call of calls.filter((one) => !outer.has(one.span_id)).sort((a, b) => a.start_us! - b.start_us!)) {
    const free = lanes.find((lane) => endOf(lane.at(-1)!) <= call.start_us!);
    if (free) free.push(call);
    else if (lanes.length < MOST) lanes.push([call]);
    else lanes.at(-1)!.push(call);
  }
  return lanes;
}

interface Shown {
  details: RunDetails;
  view: View;
  marked: Set<string>;
  chosen: string | null;
  choose: (span: string | null) => void;
}

export function Lanes({ details, view, marked, chosen, choose }: Shown) {
  const lanes = useMemo(() => lanesOf(details), [details]);
  if (lanes.length < 2) return null;
  const at = (time: number) => Math.max(0, Math.min(WIDE, ((time - view.from) / (view.to - view.from)) * WIDE));
  /** The bars of some calls as one path; those that cannot be told apart are one bar. */
  const bars = (fits: (span: Span) => boolean) =>
    lanes.map((lane, number) => {
      let [path, drawn] = ["", -1];
      for (const span of lane) {
        if (endOf(span) < view.from || span.start_us! > view.to || !fits(span)) continue;
        const [left, right] = [at(span.start_us!), Math.max(at(endOf(span)), at(span.start_us!) + THIN)];
        if (right <= drawn) continue;
        path += `M${Math.max(left, drawn).toFixed(1)} ${number * LANE + 1.5}H${right.toFixed(1)}v${LANE - 3}H${Math.max(left, drawn).toFixed(1)}Z`;
        drawn = right;
      }
      return path;
    }).join("");
  const pick = (event: MouseEvent) => {
    const { left, top, width, height } = (event.currentTarget as Element).getBoundingClientRect();
    const time = view.from + ((event.clientX - left) / width) * (view.to - view.from);
    const lane = lanes[Math.floor(((event.clientY - top) / height) * lanes.length)] ?? [];
    const slack = ((view.to - view.from) / width) * 3;
    const found = lane.find((span) => span.start_us! - slack <= time && endOf(span) + slack >= time);
    if (found) choose(found.span_id);
  };
  return (
    <svg
      class="lanes" viewBox={`0 0 ${WIDE} ${lanes.length * LANE}`} preserveAspectRatio="none" style={{ height: `${lanes.length * LANE}px` }}
      role="img" aria-label={`Calls at the same time, in ${lanes.length} lanes`} onClick={pick}
    >
      <title>{lanes.length === MOST ? `${MOST} or more` : lanes.length} calls at once</title>
      <path d={bars((span) => span.kind === "llm" && span.error == null)} class="models-at-work" />
      <path d={bars((span) => span.kind === "tool" && span.error == null)} class="tools-at-work" />
      <path d={bars((span) => span.error != null)} class="failed" />
      <path d={bars((span) => marked.has(span.span_id) || span.span_id === chosen)} class="framed" />
    </svg>
  );
}

// The whole run on one strip: when models and tools were at work, where something failed, and which part the waterfall shows.
import { useMemo, useRef } from "preact/hooks";
import type { RunDetails } from "./data";
import { type View, between, moved, zoomed } from "./timeline";

const PARTS = 300;
const HEIGHT = 28;
const CLICK = 0.004;

interface Shown {
  details: RunDetails;
  whole: number;
  view: View;
  marked: Set<string>;
  show: (view: View | null) => void;
}

/** Return how much of each part of the time models, and models and tools together, were at work. */
function workOf(details: RunDetails, whole: number): [number[], number[]] {
  const [models, all] = [new Array<number>(PARTS).fill(0), new Array<number>(PARTS).fill(0)];
  const size = whole / PARTS;
  for (const span of details.spans) {
    if (span.start_us == null || span.counted_as !== "call" || (span.kind !== "llm" && span.kind !== "tool")) continue;
    const end = span.start_us + (span.duration_us ?? 0);
    for (let part = Math.max(0, Math.floor(span.start_us / size)); part < PARTS && part * size <= end; part++) {
      const share = Math.max(0, Math.min(end, (part + 1) * size) - Math.max(span.start_us, part * size)) / size;
      all[part]! += share;
      if (span.kind === "llm") models[part]! += share;
    }
  }
  return [models, all];
}

function area(of: number[], most: number): string {
  const heights = of.map((one, part) => `H${part}V${(HEIGHT - (one / most) * (HEIGHT - 4)).toFixed(1)}`);
  return `M0 ${HEIGHT}${heights.join("")}H${PARTS}V${HEIGHT}Z`;
}

export function Strip({ details, whole, view, marked, show }: Shown) {
  const box = useRef<SVGSVGElement>(null);
  const began = useRef<number | null>(null);
  const [models, all] = useMemo(() => workOf(details, whole), [details, whole]);
  const most = Math.max(1, ...all);
  const places = (fits: (span: RunDetails["spans"][number]) => boolean) => [
    ...new Set(details.spans.filter(fits).map((span) => Math.round(((span.start_us ?? 0) / whole) * PARTS * 3) / 3)),
  ];
  const failed = useMemo(() => places((span) => span.error != null), [details, whole]);
  const culprits = useMemo(() => places((span) => marked.has(span.span_id)), [details, whole, marked]);
  const at = (event: MouseEvent) => {
    const { left, width } = box.current!.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - left) / width)) * whole;
  };
  const [left, right] = [(view.from / whole) * PARTS, (view.to / whole) * PARTS];
  return (
    <svg
      ref={box} class="strip" viewBox={`0 0 ${PARTS} ${HEIGHT}`} preserveAspectRatio="none" role="img"
      aria-label="The whole run: models and tools at work, failures, and the part that is shown below"
      onPointerDown={(event) => {
        began.current = at(event);
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        const now = at(event);
        if (began.current !== null && Math.abs(now - began.current) > CLICK * whole) show(between(began.current, now, whole));
      }}
      onPointerUp={(event) => {
        const [from, to] = [began.current, at(event)];
        began.current = null;
        if (from !== null && Math.abs(to - from) <= CLICK * whole) {
          const length = view.to - view.from;
          show(moved({ from: to - length / 2, to: to + length / 2 }, 0, whole));
        }
      }}
      onDblClick={() => show(null)}
      onWheel={(event) => {
        event.preventDefault();
        show(zoomed(view, event.deltaY < 0 ? 1.3 : 1 / 1.3, at(event), whole));
      }}
    >
      <path d={area(all, most)} class="tools-at-work" />
      <path d={area(models, most)} class="models-at-work" />
      {failed.map((place) => <rect key={place} x={place} y={0} width={0.6} height={HEIGHT} class="failed" />)}
      {culprits.map((place) => <rect key={place} x={place - 0.4} y={0} width={1.2} height={HEIGHT} class="culprit" />)}
      <path d={`M0 0H${left}V${HEIGHT}H0ZM${right} 0H${PARTS}V${HEIGHT}H${right}Z`} class="beyond" />
    </svg>
  );
}

// Which part of a run's time the waterfall shows, in microseconds since its first span.
import type { Span } from "./data";

export interface View {
  from: number;
  to: number;
}

const LEAST = 10;
/** Share of the view that a framed span takes, and below which share of the run it is framed. */
const FRAMED = 1 / 20;
const SLIVER = 1 / 50;
const SECOND = 1_000_000;
const MINUTE = 60 * SECOND;
const STEPS = [
  ...[1, 10, 100, 1e3, 1e4, 1e5, 1e6].flatMap((ten) => [ten, 2 * ten, 5 * ten]),
  ...[10, 15, 30].map((seconds) => seconds * SECOND),
  ...[1, 2, 5, 10, 15, 30, 60, 120, 360, 720, 1440].map((minutes) => minutes * MINUTE),
];

/** Return the view, not shorter than can be drawn and inside of the run; null where it is the whole run. */
function fitted(from: number, length: number, whole: number): View | null {
  if (length >= whole) return null;
  const kept = Math.max(length, Math.min(LEAST, whole));
  const start = Math.max(0, Math.min(from, whole - kept));
  return { from: start, to: start + kept };
}

/** Enlarge by a factor; what is at `at` stays where it is. */
export function zoomed(view: View, factor: number, at: number, whole: number): View | null {
  return fitted(at - (at - view.from) / factor, (view.to - view.from) / factor, whole);
}

/** Move by a share of what is shown. */
export function moved(view: View, share: number, whole: number): View | null {
  const length = view.to - view.from;
  return fitted(view.from + share * length, length, whole);
}

/** Show exactly this part. */
export function between(from: number, to: number, whole: number): View | null {
  return fitted(Math.min(from, to), Math.abs(to - from), whole);
}

/** Show a span with what is around it; `only` where it is too small to be seen in the whole run. */
export function framing(span: Span, whole: number, only: boolean): View | null {
  const length = span.duration_us ?? 0;
  if (span.start_us == null || (only && length > whole * SLIVER)) return null;
  const wide = Math.max(length, LEAST) / (only ? FRAMED : 0.5);
  return fitted(span.start_us + length / 2 - wide / 2, wide, whole);
}

/** Return round times in the view, not many more than `most`, and how each is written. */
export function ticks(view: View, most: number): { at: number; text: string }[] {
  const step = STEPS.find((one) => (view.to - view.from) / one <= most) ?? STEPS.at(-1)!;
  const first = Math.ceil(view.from / step);
  return Array.from({ length: Math.floor(view.to / step) - first + 1 }, (_, index) => {
    const at = (first + index) * step;
    return { at, text: written(at, step, view.to) };
  });
}

function written(at: number, step: number, last: number): string {
  if (at === 0) return "0";
  const places = (unit: number) => Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
  if (last < SECOND) return `${(at / 1000).toFixed(places(1000))} ms`;
  if (last < 2 * MINUTE) return `${(at / SECOND).toFixed(places(SECOND))} s`;
  const minutes = Math.floor(at / MINUTE);
  if (step >= MINUTE) return `${minutes} min`;
  const rest = ((at - minutes * MINUTE) / SECOND).toFixed(places(SECOND));
  return `${minutes}:${rest.includes(".") ? rest.padStart(rest.length - rest.indexOf(".") + 2, "0") : rest.padStart(2, "0")}`;
}

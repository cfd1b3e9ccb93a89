// Numbers as people read them. Unknown is "?", never 0.

/** What has the sums of a run: a run of the results, or one that the service lists. */
interface Summed {
  totals: Record<string, unknown>;
}

const whole = new Intl.NumberFormat("en-US");

export function count(value: number | null | undefined): string {
  return value == null ? "?" : whole.format(value);
}

export function amount(value: number, thing: string, things = `${thing}s`): string {
  return `${count(value)} ${value === 1 ? thing : things}`;
}

export function dollars(value: number | null | undefined): string {
  if (value == null) return "?";
  if (value === 0 || value >= 1) return `$${value.toFixed(2)}`;
  if (value >= 0.0001) return `$${value.toFixed(4)}`;
  return `$${value.toFixed(Math.min(12, 1 - Math.floor(Math.log10(value))))}`;
}

export function duration(ms: number | null | undefined): string {
  if (ms == null) return "?";
  if (ms === 0) return "0 ms";
  if (ms < 1) return `${(ms * 1000).toFixed(0)} µs`;
  if (ms < 1000) return `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
  if (ms < 119_950) return `${(ms / 1000).toFixed(1)} s`;
  const hours = ms >= 3_599_500;
  const units = Math.round(ms / (hours ? 60_000 : 1000));
  const rest = units % 60 ? ` ${units % 60} ${hours ? "min" : "s"}` : "";
  return `${Math.floor(units / 60)} ${hours ? "h" : "min"}${rest}`;
}

function side(value: number, bound: number): number {
  return Math.abs(value - bound) <= 1e-12 * Math.abs(bound) ? 0 : Math.sign(value - bound);
}

/** A number with as many places as keep it on its side of each bound, as `support/figures.py` does it: 69.8, and not 70, beside 70. */
function beside(value: number, bounds: number[]): string {
  for (let places = 0; places < 15; places++) {
    const text = value.toFixed(places);
    if (bounds.every((bound) => side(Number(text), bound) === side(value, bound))) return text;
  }
  return String(value);
}

/** A share, never rounded to the other side of a bound, nor to none or all where it is neither. */
export function percent(share: number | null | undefined, ...bounds: number[]): string {
  return share == null ? "?" : `${beside(share * 100, [0, ...bounds.map((bound) => bound * 100), 100])} %`;
}

function total(run: Summed, name: string): number | null {
  const value = run.totals[name];
  return typeof value === "number" ? value : null;
}

/** A number that lies between two bounds; ≥ where nothing bounds it above. */
function between(low: number, high: number | null, written: (value: number) => string): string {
  if (high == null) return low ? `≥${written(low)}` : "?";
  return written(low) === written(high) ? written(high) : low ? `${written(low)} to ${written(high)}` : `≤${written(high)}`;
}

/** A total by its name: the number, or between which it lies. */
export function totalOf(run: Summed, name: string): string {
  return between(total(run, `${name}_low`) ?? 0, total(run, `${name}_high`), count);
}

/** Input and output tokens together; the value is null where it is not exactly known. */
export function tokensOf(run: Summed): { value: number | null; text: string } {
  const low = (total(run, "input_tokens_low") ?? 0) + (total(run, "output_tokens_low") ?? 0);
  const [input, output] = [total(run, "input_tokens_high"), total(run, "output_tokens_high")];
  const high = input == null || output == null ? null : input + output;
  return { value: low === high ? high : null, text: between(low, high, count) };
}

/** Cost likewise. */
export function costOf(run: Summed): { value: number | null; text: string } {
  const [low, high] = [total(run, "cost_low") ?? 0, total(run, "cost_high")];
  return { value: low === high ? high : null, text: between(low, high, dollars) };
}

export function median(values: (number | null)[]): number | null {
  const known = values.filter((value): value is number => value != null).sort((a, b) => a - b);
  if (!known.length || known.length < values.length) return null;
  const middle = Math.floor(known.length / 2);
  return known.length % 2 ? known[middle]! : (known[middle - 1]! + known[middle]!) / 2;
}

/** JSON as it is shown: a text as it is, anything else on lines. */
export function shown(value: unknown): string {
  if (value == null) return "unknown";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** A JSON text with its lines, or the text as it is. */
export function pretty(text: string | null): string {
  if (text == null) return "not recorded";
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/g;

/** Text of a trace with what a reader cannot see, or what turns the reading direction, written as its code point. */
export function plain(text: string): string {
  return text.replace(HIDDEN, (letter) => `‹U+${letter.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}›`);
}

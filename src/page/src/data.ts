// What the report wrote into this file: the results, and for each run its spans, packed until they are looked at.
import type { Comparison } from "./types/compare";
import type { History } from "./types/history";
import type { Results } from "./types/results";
import type { RunDetails } from "./types/run-details";
import type { RunList } from "./types/run-list";

export type { Comparison, History, Results, RunDetails, RunList };
export type ListedRun = RunList["runs"][number];
export type Case = Results["cases"][number];
export type Run = Case["runs"][number];
export type Verdict = Run["assertions"][number];
export type Span = RunDetails["spans"][number];

/** A run with the case that it belongs to. */
export interface RunOfCase {
  run: Run;
  case: Case;
}

async function unpacked(base64: string): Promise<unknown> {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

/** What the report is about. */
export interface Report {
  results: Results;
  /** What comparing it with an earlier campaign says; null where none was compared. */
  comparison: Comparison | null;
  /** What the campaigns of the suite came to; null where that is not known. */
  history: History | null;
}

/** Return what the file holds of the report. */
export async function readReport(): Promise<Report> {
  const [results, comparison, history] = ["results", "comparison", "history"].map((id) => document.getElementById(id)?.textContent);
  if (!results) throw new Error("There are no results in this file.");
  return {
    results: (await unpacked(results)) as Results,
    comparison: comparison ? ((await unpacked(comparison)) as Comparison) : null,
    history: history ? ((await unpacked(history)) as History) : null,
  };
}

/** What stands in place of a verdict's SQL where it is apart (`report/page.py`). */
const APART = "-";
let queries: Promise<Record<string, string>> | undefined;

/** Return the SQL of a verdict. */
export async function readQuery(verdict: Verdict): Promise<string> {
  if (verdict.sql !== APART) return verdict.sql;
  const packed = document.getElementById("queries")?.textContent;
  queries ??= packed ? (unpacked(packed) as Promise<Record<string, string>>) : Promise.resolve({});
  return (await queries)[verdict.verdict_id] ?? "unknown";
}

const read = new Map<string, Promise<RunDetails | null>>();

/** Return what is known of a run; null where its spans are not in this file. */
export function readRun(id: string): Promise<RunDetails | null> {
  let found = read.get(id);
  if (!found) {
    const element = document.querySelector(`script[data-run="${CSS.escape(id)}"]`);
    found = element?.textContent ? (unpacked(element.textContent) as Promise<RunDetails>) : Promise.resolve(null);
    read.set(id, found);
  }
  return found;
}

/** Return what a verdict says, without what the trace lacks, which is said once for its run. */
export function messageOf(run: Run, verdict: Verdict): string {
  const missing = ` More spans could change this: ${run.trace.incomplete_because.join(" ")}`;
  return run.trace.incomplete_because.length ? verdict.message.replace(missing, " More spans could change this.") : verdict.message;
}

/** Return every run with its case, in the order of the report. */
export function runsOf(results: Results): RunOfCase[] {
  return results.cases.flatMap((one) => one.runs.map((run) => ({ run, case: one })));
}

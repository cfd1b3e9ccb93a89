/* Written by `npm run types` from the JSON Schema; change the struct in Python and run it again. */

export type RunId = string;
export type CaseId = string | null;
export type ModelId = string | null;
export type Repetition = number | null;
export type ClosedBy = string | null;
export type Complete = boolean | null;
export type RunStatus = string | null;
export type StartedNs = number | null;
export type IncompleteBecause = string[];
export type Spans = number;
export type Agents = string[];
export type Models = string[];
export type Verdicts = {
  [k: string]: number;
} | null;
export type Runs = ListedRun[];
export type Total = number;

/**
 * Runs, in the order of first sight.
 */
export interface RunList {
  runs: Runs;
  total: Total;
}
/**
 * One run. Unknown is null.
 */
export interface ListedRun {
  run_id: RunId;
  case_id: CaseId;
  model_id: ModelId;
  repetition: Repetition;
  closed_by: ClosedBy;
  complete: Complete;
  run_status: RunStatus;
  started_ns: StartedNs;
  incomplete_because: IncompleteBecause;
  spans: Spans;
  agents: Agents;
  models: Models;
  totals: Totals;
  verdicts?: Verdicts;
}
export interface Totals {
  [k: string]: unknown;
}

/* Written by `npm run types` from the JSON Schema; change the struct in Python and run it again. */

/**
 * Name and version of this format: keys may be added, never changed.
 */
export type Schema = "clawtrace.results/1";
/**
 * Version of clawtrace that judged.
 */
export type Clawtrace = string;
/**
 * The suite; null for recorded input and for a single command.
 */
export type SuiteId = string | null;
/**
 * The suite's label.
 */
export type Title = string;
/**
 * Title of the run profile; `Default` where none was named.
 */
export type RunProfile = string;
/**
 * Title of the evaluation profile; null where none was named.
 */
export type EvaluationProfile = string | null;
/**
 * When the evaluation began, ISO 8601 in UTC.
 */
export type StartedAt = string;
/**
 * The span store; null for recordings.
 */
export type Store = string | null;
/**
 * Recordings.
 */
export type Traces = string[];
/**
 * How recordings are split into runs.
 */
export type RunsBy = "rules" | "one" | "file" | "dir";
/**
 * The id of the only run, where one was given.
 */
export type OneRun = string | null;
/**
 * Agents' own logs.
 */
export type Logs = string[];
/**
 * The assertions file, whose `model_pricing` counts; null for a suite.
 */
export type Assertions = string | null;
/**
 * The folder of the project.
 */
export type Project = string;
/**
 * From the start to the last verdict; null when it was not measured.
 */
export type DurationMs = number | null;
/**
 * `--strict`
 */
export type Strict = boolean;
/**
 * `--allow-missing-trace`
 */
export type AllowMissingTrace = boolean;
/**
 * `--allow-missing-data`
 */
export type AllowMissingData = boolean;
/**
 * `--gate-incomplete`
 */
export type GateIncomplete = "error" | "warn";
/**
 * `--gate-on`
 */
export type GateOn = "rate" | "lower-bound";
/**
 * 0 passed, 1 failed, 2 usage, 3 undecided, 4 broken.
 */
export type ExitCode = 0 | 1 | 2 | 3 | 4;
/**
 * All runs.
 */
export type Runs = number;
/**
 * Runs with status `pass`.
 */
export type Passed = number;
/**
 * Runs with status `fail`.
 */
export type Failed = number;
/**
 * Runs with status `warn`.
 */
export type Warned = number;
/**
 * Runs with status `skip`.
 */
export type Skipped = number;
/**
 * Runs with status `inconclusive`.
 */
export type Inconclusive = number;
/**
 * Runs with status `error`, and runs that broke before anything could be asked.
 */
export type Errored = number;
/**
 * Answers that came and count.
 */
export type Answers = number;
/**
 * Their input tokens, with those of answers that were not valid.
 */
export type InputTokens = number;
/**
 * Their output tokens.
 */
export type OutputTokens = number;
/**
 * Their cost in US dollars; null when the price of a model is not known.
 */
export type CostUsd = number | null;
/**
 * The case; for recorded input the run's id.
 */
export type CaseId = string;
/**
 * The suite's model entry; null for recorded input.
 */
export type ModelId = string | null;
/**
 * The case's label; null for recorded input.
 */
export type Title1 = string | null;
/**
 * The author's own words about the case; empty when none were given.
 */
export type Description = string;
/**
 * Words by which suites select the case.
 */
export type Tags = string[];
/**
 * The agent whose workspace its runs start from; null when it has none.
 */
export type AgentId = string | null;
/**
 * The `case_id` of the case file, where the case is a row of its dataset; null where it is none.
 */
export type RowOf = string | null;
/**
 * Runs that passed; one that only warned, and not for missing data, is among them.
 */
export type Passed1 = number;
/**
 * Runs that failed.
 */
export type Failed1 = number;
/**
 * Runs that were skipped, inconclusive, warned for missing data, or had an assertion that broke.
 */
export type Undecided = number;
/**
 * `passed` divided by the runs that ran and were judged; null when none was.
 */
export type PassRate = number | null;
/**
 * Wilson interval of the pass rate, confidence 0.95, as wide as undecided runs could make it; null like the rate.
 */
export type Interval = [unknown, unknown] | null;
/**
 * How alike the runs are; null while fewer than two were judged, or undecided ones could say otherwise.
 */
export type Stability = ("stable-pass" | "flaky" | "stable-fail") | null;
/**
 * The assertion's id.
 */
export type Id = string;
/**
 * The assertion's type.
 */
export type Type = string;
/**
 * Runs in which it passed.
 */
export type Passed2 = number;
/**
 * Runs in which it failed, at any severity.
 */
export type Failed2 = number;
/**
 * Runs in which it did neither.
 */
export type Undecided1 = number;
/**
 * Least share of the runs in which it must pass.
 */
export type MinPassRate = number;
/**
 * Whether it was reached; null when undecided runs decide.
 */
export type Reached = boolean | null;
/**
 * `passed` divided by the runs in which it was asked.
 */
export type PassRate1 = number | null;
/**
 * Wilson interval of the pass rate, confidence 0.95, as wide as undecided answers could make it.
 */
export type Interval1 = [unknown, unknown] | null;
/**
 * How alike the answers are; null while undecided ones could say otherwise.
 */
export type Stability1 = ("stable-pass" | "flaky" | "stable-fail") | null;
/**
 * Each assertion over the repetitions; empty when fewer than two runs were judged.
 */
export type Assertions1 = RepeatedAssertion[];
/**
 * The run's id, unique in its store.
 */
export type RunId = string;
/**
 * 1-based repetition of the same case and model.
 */
export type Repetition = number;
/**
 * The heaviest of its assertions: error, fail, inconclusive, skip, warn, pass; null when nothing was asked.
 */
export type Status = ("pass" | "fail" | "warn" | "skip" | "inconclusive" | "error") | null;
/**
 * What the run counts as in pass rates; null when it broke, or nothing was asked of it.
 */
export type Outcome = ("passed" | "failed" | "undecided") | null;
/**
 * Whether the run was taken over from an earlier campaign.
 */
export type Reused = boolean;
/**
 * Why earlier attempts at the run failed; only failures of the infrastructure are tried again.
 */
export type Retried = string[];
/**
 * Whether the case is in quarantine (`quarantine_tags` of the suite): it decides nothing.
 */
export type Quarantined = boolean;
/**
 * How the agent's process ended; null for recorded input.
 */
export type RunStatus = ("success" | "failed" | "timed_out" | "provider_error" | "invalid") | null;
/**
 * What broke before or while the agent ran; empty when nothing did.
 */
export type Error = string;
/**
 * Whether no reason is known against the trace being whole; null while the run is open or has no trace.
 */
export type Complete = boolean | null;
/**
 * The reasons against it, one plain sentence each.
 */
export type IncompleteBecause = string[];
/**
 * Why no more spans are expected: exit, end_run, evidence, settled, timeout, recording; null while open.
 */
export type ClosedBy = string | null;
/**
 * Distinct spans.
 */
export type Spans = number;
/**
 * Distinct trace ids.
 */
export type Traces1 = number;
/**
 * From the first start to the last end; null when unknown.
 */
export type DurationMs1 = number | null;
/**
 * The judges' score from 0 to 10; null where none was asked, or none answered.
 */
export type FinalScore = number | null;
/**
 * What receiving and normalising the run had to say: conflicts, rejected spans, cut cycles.
 */
export type Diagnostics = string[];
/**
 * `RUN_ID/ASSERTION_ID`: what `clawtrace query --verdict FILE#ID` takes.
 */
export type VerdictId = string;
/**
 * The assertion's id, unique within its file.
 */
export type Id1 = string;
/**
 * The assertion's type, for example `tool_sequence`.
 */
export type Type1 = string;
/**
 * How the question was answered.
 */
export type Status1 = "pass" | "fail" | "warn" | "skip" | "inconclusive" | "error";
/**
 * `warn` keeps a fail, skip or inconclusive out of the exit code.
 */
export type Severity = "error" | "warn";
/**
 * Whether no further span could have changed the answer.
 */
export type Final = boolean;
/**
 * One plain sentence: what was asked, what was found, why the status is what it is.
 */
export type Message = string;
/**
 * The author's own words about the assertion; empty when none were given.
 */
export type Description1 = string;
/**
 * What the answer counts towards in the run's scores.
 */
export type Dimensions = string[];
/**
 * The agent's name or matcher as written; null for every agent.
 */
export type Agent = string | null;
/**
 * The turn as written; null for every turn.
 */
export type Turn = number | "last" | null;
/**
 * Whether it failed as expected (`expect: fail`); its status is then `warn`.
 */
export type KnownFailure = boolean;
/**
 * 32 hexadecimal digits; null when the fact is known only from a message or a log line.
 */
export type TraceId = string | null;
/**
 * 16 hexadecimal digits; null when the fact is known only from a message or a log line.
 */
export type SpanId = string | null;
/**
 * Name of the span, or of what stands for it.
 */
export type Name = string;
/**
 * What about the span mattered.
 */
export type Why = string;
/**
 * Start of the span in nanoseconds since the Unix epoch; null when unknown.
 */
export type StartNs = number | null;
/**
 * The spans that decided, the most telling first.
 */
export type Evidence = EvidenceSpan[];
/**
 * The fact that was unknown, as relation and column; empty when none was.
 */
export type Missing = string;
/**
 * The next step, where one is known; else empty.
 */
export type Hint = string;
/**
 * Whether spans of the run arrived after this verdict.
 */
export type Stale = boolean;
/**
 * The question about the run as SQL that `clawtrace query` takes as it is, with `--agent` and `--turn` of the scope; its
 * row is the answer. Where a function decided: for the rows that it was given. Empty for a probe of the world.
 */
export type Sql = string;
/**
 * Its name: module, class and method of the assertion.
 */
export type Function = string;
/**
 * SQL for its first argument, the run's row of the question; `clawtrace query` takes it as it is.
 */
export type RowSql = string;
/**
 * The first of the rows that it was given, long texts cut; `sql` of the verdict finds all of them.
 */
export type Rows = {
  [k: string]: unknown;
}[];
/**
 * How many there were.
 */
export type RowsInAll = number;
/**
 * Rows that it was given from the world, such as a file of the run; no query finds them.
 */
export type WorldRows = {
  [k: string]: unknown;
}[];
/**
 * The run whose spans answered where it is another one, which holds a log; else null.
 */
export type AskedRun = string | null;
/**
 * Whether its status is `warn` because data are missing.
 */
export type MissingData = boolean;
/**
 * Least share of the repetitions in which it must pass.
 */
export type MinPassRate1 = number;
/**
 * The file in which the assertion is written, relative to the folder of this file; null when unknown.
 */
export type File = string | null;
/**
 * Its line there, counted from 1; null when unknown.
 */
export type Line = number | null;
/**
 * Time of the query divided by the number of runs that it answered for.
 */
export type DurationMs2 = number;
/**
 * Every assertion's answer, in the order of the file.
 */
export type Assertions2 = AssertionResult[];
/**
 * The repetitions, in order.
 */
export type Runs1 = Run[];
/**
 * One entry for each case and model, in the order of the suite.
 */
export type Cases = Case[];
/**
 * The suite's model entry; null for a suite without models.
 */
export type ModelId1 = string | null;
/**
 * Runs that passed.
 */
export type Passed3 = number;
/**
 * Runs that failed.
 */
export type Failed3 = number;
/**
 * Runs that did neither.
 */
export type Undecided2 = number;
/**
 * `passed` divided by the runs that ran and were judged; null when none was.
 */
export type PassRate2 = number | null;
/**
 * Wilson interval of the pass rate, confidence 0.95.
 */
export type Interval2 = [unknown, unknown] | null;
/**
 * The least pass rate, from the suite's file.
 */
export type Threshold = number;
/**
 * How far the pass rate may stay below it.
 */
export type Tolerance = number;
/**
 * What was held against it: the rate, or the lower end of its interval.
 */
export type GateOn1 = "rate" | "lower-bound";
/**
 * Whether it was reached; null when undecided runs decide, or none ran.
 */
export type Reached1 = boolean | null;
/**
 * Whether a pass rate below is exit code 1, or only shown.
 */
export type Behavior = "error" | "informational";
/**
 * The suite's pass rate of each model that has a threshold in the suite's file.
 */
export type Thresholds = SuiteThreshold[];
/**
 * The id that it would have had.
 */
export type RunId1 = string;
/**
 * The case.
 */
export type CaseId1 = string;
/**
 * The suite's model entry.
 */
export type ModelId2 = string | null;
/**
 * 1-based repetition of the same case and model.
 */
export type Repetition1 = number;
/**
 * Why it was not run, or not judged.
 */
export type Reason = string;
/**
 * Whether the case is in quarantine: it decides nothing.
 */
export type Quarantined1 = boolean;
/**
 * Planned runs that were not started, or ended before they could be judged; a campaign with any out of quarantine has not passed.
 */
export type NotRun = NotRun1[];

/**
 * The results of one `clawtrace eval` or `clawtrace run`.
 */
export interface Results {
  schema: Schema;
  clawtrace: Clawtrace;
  suite_id: SuiteId;
  /**
   * What its author says of it; null like `suite_id`.
   */
  suite: Suite | null;
  started_at: StartedAt;
  /**
   * Where the runs are; null where they were not kept.
   */
  source: ResultsSource | null;
  duration_ms: DurationMs;
  gate: GateFlags;
  exit_code: ExitCode;
  totals: Totals;
  /**
   * What judging took; null where no judge was asked.
   */
  judging: JudgingTotals | null;
  cases: Cases;
  thresholds: Thresholds;
  not_run: NotRun;
}
/**
 * What the author of a suite says of it, and of what it names.
 */
export interface Suite {
  title: Title;
  metadata: Metadata;
  models: Models;
  agents: Agents;
  run_profile: RunProfile;
  evaluation_profile: EvaluationProfile;
}
/**
 * The author's notes on the suite.
 */
export interface Metadata {
  [k: string]: unknown;
}
/**
 * Label by model id, of those that have one.
 */
export interface Models {
  [k: string]: string;
}
/**
 * Title by agent id, of those in use.
 */
export interface Agents {
  [k: string]: string;
}
/**
 * Where the runs are, so that a verdict can be rerun. Paths are relative to the folder of this file.
 */
export interface ResultsSource {
  store: Store;
  traces: Traces;
  runs_by: RunsBy;
  one_run: OneRun;
  logs: Logs;
  assertions: Assertions;
  project: Project;
}
/**
 * By what the exit code was computed.
 */
export interface GateFlags {
  strict: Strict;
  allow_missing_trace: AllowMissingTrace;
  allow_missing_data: AllowMissingData;
  gate_incomplete: GateIncomplete;
  gate_on: GateOn;
}
/**
 * Numbers of runs.
 */
export interface Totals {
  runs: Runs;
  passed: Passed;
  failed: Failed;
  warned: Warned;
  skipped: Skipped;
  inconclusive: Inconclusive;
  errored: Errored;
}
/**
 * What judges took, asked by the evaluation profile or by assertions, apart from what the runs took.
 */
export interface JudgingTotals {
  answers: Answers;
  input_tokens: InputTokens;
  output_tokens: OutputTokens;
  cost_usd: CostUsd;
}
/**
 * All repetitions of one case with one model.
 */
export interface Case {
  case_id: CaseId;
  model_id: ModelId;
  title: Title1;
  description: Description;
  tags: Tags;
  metadata: Metadata1;
  agent_id: AgentId;
  unjudged: Unjudged;
  row_of: RowOf;
  passed: Passed1;
  failed: Failed1;
  undecided: Undecided;
  pass_rate: PassRate;
  interval: Interval;
  stability: Stability;
  pass_at_k: PassAtK;
  pass_hat_k: PassHatK;
  assertions: Assertions1;
  runs: Runs1;
}
/**
 * The author's notes on the case.
 */
export interface Metadata1 {
  [k: string]: unknown;
}
/**
 * The case's `expectations` and `rubric`, of which nothing was judged because there is no judge; else empty.
 */
export interface Unjudged {
  [k: string]: unknown;
}
/**
 * By k: the chance that at least one of k runs passes, unbiased; undecided runs count as not passed.
 */
export interface PassAtK {
  [k: string]: number;
}
/**
 * By k: the chance that all of k runs pass (pass^k), unbiased; undecided runs count as not passed.
 */
export interface PassHatK {
  [k: string]: number;
}
/**
 * One assertion over the repetitions of a case with one model.
 */
export interface RepeatedAssertion {
  id: Id;
  type: Type;
  passed: Passed2;
  failed: Failed2;
  undecided: Undecided1;
  min_pass_rate: MinPassRate;
  reached: Reached;
  pass_rate: PassRate1;
  interval: Interval1;
  stability: Stability1;
  pass_at_k: PassAtK1;
  pass_hat_k: PassHatK1;
}
/**
 * By k: the chance that it passes in at least one of k runs.
 */
export interface PassAtK1 {
  [k: string]: number;
}
/**
 * By k: the chance that it passes in all of k runs (pass^k).
 */
export interface PassHatK1 {
  [k: string]: number;
}
/**
 * One repetition of one case with one model.
 */
export interface Run {
  run_id: RunId;
  repetition: Repetition;
  status: Status;
  outcome: Outcome;
  reused: Reused;
  retried: Retried;
  quarantined: Quarantined;
  run_status: RunStatus;
  error: Error;
  trace: ReceivedTrace;
  final_score: FinalScore;
  judgement: Judgement;
  scores: Scores;
  totals: Totals1;
  diagnostics: Diagnostics;
  assertions: Assertions2;
}
/**
 * What was received.
 */
export interface ReceivedTrace {
  complete: Complete;
  incomplete_because: IncompleteBecause;
  closed_by: ClosedBy;
  spans: Spans;
  traces: Traces1;
  duration_ms: DurationMs1;
}
/**
 * What the judges said: dimensions, spread, each judge run, and what asking took; empty where none was asked.
 */
export interface Judgement {
  [k: string]: unknown;
}
/**
 * By dimension 10 × passed / decided over the assertions that have it; one without a decided assertion is left out.
 */
export interface Scores {
  [k: string]: number;
}
/**
 * The run's row of the relation `run_totals`; null values are unknown, never zero.
 */
export interface Totals1 {
  [k: string]: unknown;
}
/**
 * The answer of one assertion for one run.
 */
export interface AssertionResult {
  verdict_id: VerdictId;
  id: Id1;
  type: Type1;
  status: Status1;
  severity: Severity;
  final: Final;
  message: Message;
  description: Description1;
  dimensions: Dimensions;
  /**
   * What the question was narrowed down to; null for the whole run.
   */
  scope: ReportedScope | null;
  known_failure: KnownFailure;
  expected: Expected;
  actual: Actual;
  evidence: Evidence;
  missing: Missing;
  hint: Hint;
  stale: Stale;
  sql: Sql;
  params: Params;
  /**
   * The function that decided; null where the row of `sql` is the answer.
   */
  decided_by: DecidedBy | null;
  definition: Definition;
  asked_run: AskedRun;
  missing_data: MissingData;
  min_pass_rate: MinPassRate1;
  file: File;
  line: Line;
  duration_ms: DurationMs2;
}
/**
 * The part of a run that a question was narrowed down to.
 */
export interface ReportedScope {
  agent: Agent;
  turn: Turn;
}
/**
 * What was asked for, as a JSON value.
 */
export interface Expected {
  [k: string]: unknown;
}
/**
 * What was found, as a JSON value; null when unknown.
 */
export interface Actual {
  [k: string]: unknown;
}
/**
 * One span that decided a verdict.
 */
export interface EvidenceSpan {
  trace_id: TraceId;
  span_id: SpanId;
  name: Name;
  why: Why;
  start_ns: StartNs;
}
/**
 * The parameters and relations that were bound; they are written out in `sql`.
 */
export interface Params {
  [k: string]: unknown;
}
/**
 * The function that decided where SQL alone could not, and what it was given.
 */
export interface DecidedBy {
  function: Function;
  row_sql: RowSql;
  rows: Rows;
  rows_in_all: RowsInAll;
  world_rows: WorldRows;
}
/**
 * The assertion in the long notation, as far as it was written.
 */
export interface Definition {
  [k: string]: unknown;
}
/**
 * The pass rate of all runs with one model against the suite's threshold.
 */
export interface SuiteThreshold {
  model_id: ModelId1;
  passed: Passed3;
  failed: Failed3;
  undecided: Undecided2;
  pass_rate: PassRate2;
  interval: Interval2;
  threshold: Threshold;
  tolerance: Tolerance;
  gate_on: GateOn1;
  reached: Reached1;
  behavior: Behavior;
}
/**
 * A planned run without a result.
 */
export interface NotRun1 {
  run_id: RunId1;
  case_id: CaseId1;
  model_id: ModelId2;
  repetition: Repetition1;
  reason: Reason;
  quarantined: Quarantined1;
}

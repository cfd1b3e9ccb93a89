/* Written by `npm run types` from the JSON Schema; change the struct in Python and run it again. */

/**
 * Name and version of this format: keys may be added, never changed.
 */
export type Schema = "clawtrace.compare/1";
/**
 * Version of clawtrace that compared.
 */
export type Clawtrace = string;
/**
 * How often one of the tests of a family may call chance a difference.
 */
export type Alpha = number;
/**
 * As it was called on the command line.
 */
export type Name = string;
/**
 * Its suite; null for recorded input.
 */
export type SuiteId = string | null;
/**
 * When it began, ISO 8601 in UTC.
 */
export type StartedAt = string;
/**
 * The version that judged it.
 */
export type Clawtrace1 = string;
/**
 * Its cases, each with each model.
 */
export type Cases = number;
/**
 * Its runs.
 */
export type Runs = number;
/**
 * Its planned runs without a result.
 */
export type NotRun = number;
/**
 * `regression` when any test says so, else `improvement` when any does.
 */
export type Verdict = "regression" | "improvement" | "no evidence";
/**
 * The suite's model entry.
 */
export type ModelId = string | null;
/**
 * What the test says.
 */
export type Verdict1 = "regression" | "improvement" | "no evidence";
/**
 * Runs that passed.
 */
export type Passed = number;
/**
 * Runs that failed.
 */
export type Failed = number;
/**
 * Runs that did neither; no test counts them.
 */
export type Undecided = number;
/**
 * Runs that broke before they could be judged; no test counts them.
 */
export type Broke = number;
/**
 * Share of decided runs that passed, second minus first; null when a side has none.
 */
export type Difference = number | null;
/**
 * Newcombe's interval of the difference, confidence 0.95.
 */
export type Interval = [unknown, unknown] | null;
/**
 * Two-sided; null when nothing could be tested.
 */
export type PValue = number | null;
/**
 * After Holm's correction; null when the totals left the test no chance to find anything.
 */
export type AdjustedPValue = number | null;
/**
 * Why nothing was or could be tested, or what makes it a regression without a test; else empty.
 */
export type Reason = string;
/**
 * The most passes of the second that would have been called a regression; null: not even none at all.
 */
export type NoticedAt = number | null;
/**
 * All common cases together, model by model.
 */
export type Suites = SuiteComparison[];
/**
 * The case.
 */
export type CaseId = string;
/**
 * The suite's model entry.
 */
export type ModelId1 = string | null;
/**
 * `regression` when any of its tests says so, else `improvement` when any does.
 */
export type Verdict2 = "regression" | "improvement" | "no evidence";
/**
 * What was measured, run by run; `tokens` are input and output together.
 */
export type Measure = "duration_ms" | "tokens" | "cost_usd" | "llm_calls" | "tool_calls";
/**
 * What the test says.
 */
export type Verdict3 = "regression" | "improvement" | "no evidence";
/**
 * Runs whose trace is complete and whose value is known.
 */
export type Runs1 = number;
/**
 * Median; null without any run.
 */
export type Median = number | null;
/**
 * Smallest value.
 */
export type Least = number | null;
/**
 * Largest value.
 */
export type Most = number | null;
/**
 * Hodges-Lehmann: the median difference between a run of the second and one of the first.
 */
export type Difference1 = number | null;
/**
 * Median of the second divided by that of the first.
 */
export type Ratio = number | null;
/**
 * Cliff's delta, from -1 to 1: the share of pairs in which the second is more, minus that in which it is less.
 */
export type Delta = number | null;
/**
 * Two-sided; null when nothing could be tested.
 */
export type PValue1 = number | null;
/**
 * After Holm's correction.
 */
export type AdjustedPValue1 = number | null;
/**
 * Why nothing was tested; else empty.
 */
export type Reason1 = string;
/**
 * The smallest Cliff's delta that would have been found; null: none.
 */
export type NoticedAt1 = number | null;
/**
 * What does it take?
 */
export type Measures = MeasureTest[];
/**
 * The assertion's id.
 */
export type Id = string;
/**
 * Runs of the first campaign in which it passed.
 */
export type FirstPassed = number;
/**
 * Runs of the first campaign in which it was asked.
 */
export type FirstAsked = number;
/**
 * Runs of the second campaign in which it passed.
 */
export type SecondPassed = number;
/**
 * Runs of the second campaign in which it was asked; 0 when it is gone.
 */
export type SecondAsked = number;
/**
 * The assertions that passed in another share of the runs, or were asked in one campaign only.
 */
export type Assertions = AssertionChange[];
/**
 * The common cases, in the order of the first campaign.
 */
export type Cases1 = CaseComparison[];
/**
 * The case.
 */
export type CaseId1 = string;
/**
 * The suite's model entry.
 */
export type ModelId2 = string | null;
/**
 * Common cases that are in quarantine in one of the campaigns: they are known to be flaky, and are not compared.
 */
export type Quarantined = CaseName[];
/**
 * Runs that both campaigns have, because the second reused what was stored: of them nothing was measured anew.
 */
export type SharedRuns = number;
/**
 * Cases that the second campaign has not.
 */
export type OnlyInFirst = CaseName[];
/**
 * Cases that the first campaign has not.
 */
export type OnlyInSecond = CaseName[];
/**
 * Why `no evidence` must not be read as `no regression`: one sentence for each reason; empty when there is none.
 */
export type NotShown = string[];

/**
 * What comparing two campaigns says.
 */
export interface Comparison {
  schema: Schema;
  clawtrace: Clawtrace;
  alpha: Alpha;
  first: Side;
  second: Side1;
  verdict: Verdict;
  suites: Suites;
  cases: Cases1;
  quarantined: Quarantined;
  shared_runs: SharedRuns;
  only_in_first: OnlyInFirst;
  only_in_second: OnlyInSecond;
  not_shown: NotShown;
}
/**
 * The campaign that is compared with.
 */
export interface Side {
  name: Name;
  suite_id: SuiteId;
  started_at: StartedAt;
  clawtrace: Clawtrace1;
  cases: Cases;
  runs: Runs;
  not_run: NotRun;
}
/**
 * The campaign that is judged.
 */
export interface Side1 {
  name: Name;
  suite_id: SuiteId;
  started_at: StartedAt;
  clawtrace: Clawtrace1;
  cases: Cases;
  runs: Runs;
  not_run: NotRun;
}
/**
 * All common cases with one model, taken together case by case.
 */
export interface SuiteComparison {
  model_id: ModelId;
  pass_rate: RateTest;
}
/**
 * Do they still pass? A loss too small to be seen in any one case can be seen here.
 */
export interface RateTest {
  verdict: Verdict1;
  first: Outcomes;
  second: Outcomes1;
  difference: Difference;
  interval: Interval;
  p_value: PValue;
  adjusted_p_value: AdjustedPValue;
  reason: Reason;
  noticed_at: NoticedAt;
}
/**
 * The first campaign.
 */
export interface Outcomes {
  passed: Passed;
  failed: Failed;
  undecided: Undecided;
  broke: Broke;
}
/**
 * The second campaign.
 */
export interface Outcomes1 {
  passed: Passed;
  failed: Failed;
  undecided: Undecided;
  broke: Broke;
}
/**
 * One case with one model that both campaigns have.
 */
export interface CaseComparison {
  case_id: CaseId;
  model_id: ModelId1;
  verdict: Verdict2;
  pass_rate: RateTest1;
  measures: Measures;
  assertions: Assertions;
}
/**
 * Does it still pass?
 */
export interface RateTest1 {
  verdict: Verdict1;
  first: Outcomes;
  second: Outcomes1;
  difference: Difference;
  interval: Interval;
  p_value: PValue;
  adjusted_p_value: AdjustedPValue;
  reason: Reason;
  noticed_at: NoticedAt;
}
/**
 * One measure of both sides: the Mann-Whitney test. More is worse.
 */
export interface MeasureTest {
  measure: Measure;
  verdict: Verdict3;
  first: Spread;
  second: Spread1;
  difference: Difference1;
  ratio: Ratio;
  delta: Delta;
  p_value: PValue1;
  adjusted_p_value: AdjustedPValue1;
  reason: Reason1;
  noticed_at: NoticedAt1;
}
/**
 * The first campaign.
 */
export interface Spread {
  runs: Runs1;
  median: Median;
  least: Least;
  most: Most;
}
/**
 * The second campaign.
 */
export interface Spread1 {
  runs: Runs1;
  median: Median;
  least: Least;
  most: Most;
}
/**
 * An assertion that passed in another share of the runs, in plain numbers; no test is made of it.
 */
export interface AssertionChange {
  id: Id;
  first_passed: FirstPassed;
  first_asked: FirstAsked;
  second_passed: SecondPassed;
  second_asked: SecondAsked;
}
/**
 * A case with a model.
 */
export interface CaseName {
  case_id: CaseId1;
  model_id: ModelId2;
}

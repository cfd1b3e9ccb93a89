// Cases and models as a matrix, the failures by cause, and pass rate over cost.
import { useMemo, useState } from "preact/hooks";
import { Causes } from "./causes";
import { Bubbles } from "./chart";
import { Compared, verdictOf } from "./compared";
import { type Case, type Report, type Results, type Run, type RunOfCase, runsOf } from "./data";
import { amount, costOf, count, dollars, duration, median, percent, tokensOf } from "./format";
import { Data, Fact, StatusMark } from "./parts";
import { Said } from "./rich";
import { runLink, setQuery } from "./router";
import { Trend, historyOf } from "./trend";

const EXIT: Record<number, [string, string]> = {
  0: ["pass", "Passed"],
  1: ["fail", "Failed"],
  2: ["error", "Usage or configuration"],
  3: ["inconclusive", "Undecided"],
  4: ["error", "Something broke"],
};
/** Cases that are shown at once. */
const ROWS = 200;
const WEIGHT = ["error", "fail", "inconclusive", "skip", "warn", "none", "pass"];

const statusOf = (run: Run): string => (run.error ? "error" : (run.status ?? "none"));

/** Return the gravest status of some runs. */
function gravest(runs: Run[]): string {
  return WEIGHT.find((word) => runs.some((run) => statusOf(run) === word)) ?? "none";
}

const SORTS: Record<string, { label: string; key: (cases: Case[]) => number }> = {
  suite: { label: "order of the suite", key: () => 0 },
  status: { label: "gravest first", key: (cases) => WEIGHT.indexOf(gravest(cases.flatMap((one) => one.runs))) },
  rate: { label: "lowest pass rate", key: (cases) => Math.min(...cases.map((one) => one.pass_rate ?? 2)) },
  cost: { label: "highest cost", key: (cases) => -Math.max(...cases.flatMap((one) => one.runs.map((run) => costOf(run).value ?? 0))) },
  time: { label: "longest", key: (cases) => -Math.max(...cases.flatMap((one) => one.runs.map((run) => run.trace.duration_ms ?? 0))) },
};

export function Overview({ results, comparison, history, query }: Report & { query: URLSearchParams }) {
  const all = useMemo(() => runsOf(results), [results]);
  const text = query.get("q") ?? "";
  const wanted = query.get("status") ?? "";
  const sort = query.get("sort") ?? "suite";
  const fits = ({ run, case: one }: RunOfCase) =>
    (!wanted || statusOf(run) === wanted) &&
    `${one.case_id} ${one.title ?? ""} ${one.model_id ?? ""} ${one.tags.join(" ")} ${run.run_id}`
      .toLowerCase()
      .includes(text.toLowerCase());
  const chosen = useMemo(() => new Set(all.filter(fits).map(({ run }) => run.run_id)), [all, text, wanted]);
  const [sign, word] = EXIT[results.exit_code] ?? ["none", "?"];
  const totals = results.totals;
  const counts: [string, number][] = [
    ["pass", totals.passed], ["fail", totals.failed], ["warn", totals.warned], ["inconclusive", totals.inconclusive],
    ["skip", totals.skipped], ["error", totals.errored],
  ];
  return (
    <>
      <section class={`outcome ${sign}`} aria-label="Result">
        <h1>{word}</h1>
        <p>
          {count(totals.passed)} of {amount(totals.runs, "run")} passed. Exit code {results.exit_code}.
          {results.not_run.length > 0 && ` ${amount(results.not_run.length, "planned run")} had no result.`}
        </p>
        <div class="counts">
          {counts.filter(([, number]) => number > 0).map(([status, number]) => (
            <button
              key={status} type="button" class={`count ${status}`} aria-pressed={wanted === status}
              onClick={() => setQuery({ status: wanted === status ? null : status })}
            >
              <strong>{count(number)}</strong> <StatusMark status={status} />
            </button>
          ))}
        </div>
      </section>
      <Thresholds results={results} />
      <Causes all={all} weight={WEIGHT} />
      {comparison && <Compared comparison={comparison} />}
      <section aria-label="Cases">
        <div class="tools">
          <h2>Cases</h2>
          <label>
            Filter <input
              type="search" value={text} placeholder="case, model, tag, run" id="filter"
              onInput={(event) => setQuery({ q: event.currentTarget.value })}
            />
          </label>
          <label>
            Sort <select value={sort} onChange={(event) => setQuery({ sort: event.currentTarget.value })}>
              {Object.entries(SORTS).map(([id, one]) => <option key={id} value={id}>{one.label}</option>)}
            </select>
          </label>
          <span class="dim" role="status">{amount(chosen.size, "run")} shown</span>
        </div>
        <Matrix results={results} comparison={comparison} history={history} chosen={chosen} sort={sort} />
      </section>
      <Bubbles results={results} />
      <NotRun results={results} />
    </>
  );
}

function Matrix({ results, comparison, history, chosen, sort }: Report & { chosen: Set<string>; sort: string }) {
  const models = [...new Set(results.cases.map((one) => one.model_id))];
  const rows = new Map<string, Case[]>();
  for (const one of results.cases) {
    if (one.runs.some((run) => chosen.has(run.run_id))) rows.set(one.case_id, [...(rows.get(one.case_id) ?? []), one]);
  }
  const key = (SORTS[sort] ?? SORTS["suite"]!).key;
  const sorted = [...rows].sort(([, a], [, b]) => key(a) - key(b));
  const [whole, setWhole] = useState(false);
  const shown = whole ? sorted : sorted.slice(0, ROWS);
  if (!sorted.length) return <p class="dim">No run fits the filter.</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Cases and models">
      <table class="matrix cases">
        <thead>
          <tr>
            <th scope="col">case</th>
            {models.map((model) => (
              <th key={model} scope="col">{model == null ? "runs" : (results.suite?.models[model] ?? model)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map(([id, cases]) => (
            <tr key={id}>
              <th scope="row">
                <Data>{cases[0]!.title || id}</Data>
                {cases[0]!.title && cases[0]!.title !== id && <div class="dim"><Data>{id}</Data></div>}
                <div>{cases[0]!.tags.map((tag) => <span key={tag} class="tag">{tag}</span>)}</div>
              </th>
              {models.map((model) => (
                <td key={model} data-title={model == null ? null : (results.suite?.models[model] ?? model)}>
                  <Cell of={cases.find((one) => one.model_id === model)} comparison={comparison} history={history} chosen={chosen} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length < sorted.length && (
        <button type="button" class="quiet" onClick={() => setWhole(true)}>show all {amount(sorted.length, "case")}</button>
      )}
    </div>
  );
}

function Cell({ of, comparison, history, chosen }: Omit<Report, "results"> & { of: Case | undefined; chosen: Set<string> }) {
  if (!of) return <span class="dim">–</span>;
  const runs = of.runs.filter((run) => chosen.has(run.run_id));
  const several = of.runs.length > 1;
  const change = verdictOf(comparison, of.case_id, of.model_id);
  return (
    <div class="cell">
      {change && <span class={`tag ${change}`}>{change}</span>}
      {several && (
        <div class="rate">
          <meter min={0} max={1} value={of.pass_rate ?? 0} aria-label="pass rate" />
          <strong>{percent(of.pass_rate)}</strong>
          {of.interval && (
            <span class="dim" title="Wilson interval, confidence 0.95">
              {percent(of.interval[0] as number)}–{percent(of.interval[1] as number)}
            </span>
          )}
          {of.stability === "flaky" && <span class="tag flaky">flaky</span>}
        </div>
      )}
      <div class="runs">
        {runs.map((run) => (
          <a key={run.run_id} class={`run ${statusOf(run)}`} href={runLink(run.run_id)} title={run.run_id}>
            <StatusMark status={statusOf(run)} short={several} />
            {several && <span class="unseen">repetition {run.repetition}</span>}
            {run.quarantined && <span class="tag">quarantined</span>}
            {run.reused && <span class="tag">reused</span>}
          </a>
        ))}
      </div>
      <Trend of={historyOf(history, of)} />
      <div class="dim numbers">
        {several && "median: cost "}
        {several ? dollars(median(of.runs.map((run) => costOf(run).value))) : costOf(of.runs[0]!).text}
        {" · "}
        {several ? count(median(of.runs.map((run) => tokensOf(run).value))) : tokensOf(of.runs[0]!).text} tokens
        {" · "}
        {duration(median(of.runs.map((run) => run.trace.duration_ms)))}
      </div>
    </div>
  );
}

/** What a threshold was held against; never rounded to its other side. */
function heldAgainst(one: Results["thresholds"][number]): string {
  const least = one.threshold - one.tolerance;
  const lower = one.gate_on === "lower-bound" && one.threshold < 1;
  const held = percent(lower ? (one.interval?.[0] as number | undefined) : one.pass_rate, one.threshold, least);
  const tolerance = one.tolerance ? `, tolerance ${exact(one.tolerance)}` : "";
  return `${lower ? "lower end " : ""}${held} of at least ${exact(one.threshold)}${tolerance}`;
}

const exact = (share: number) => `${Number((share * 100).toPrecision(12))} %`;

function Thresholds({ results }: { results: Results }) {
  if (!results.thresholds.length) return null;
  return (
    <section aria-label="Thresholds">
      <h2>Thresholds</h2>
      <dl class="facts">
        {results.thresholds.map((one) => (
          <Fact key={one.model_id} name={one.model_id ?? "all runs"}>
            <StatusMark status={one.reached ? "pass" : one.reached === false ? "fail" : "inconclusive"} />{" "}
            {heldAgainst(one)}
          </Fact>
        ))}
      </dl>
    </section>
  );
}

function NotRun({ results }: { results: Results }) {
  if (!results.not_run.length) return null;
  return (
    <section aria-label="Not run">
      <h2>Not run</h2>
      <ul>
        {results.not_run.map((one) => (
          <li key={one.run_id}>
            {one.case_id} {one.model_id && `[${one.model_id}]`} repetition {one.repetition}: <Said>{one.reason}</Said>
          </li>
        ))}
      </ul>
    </section>
  );
}

// What the campaign does worse or better than an earlier one: `clawtrace.compare/1` as a table.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Comparison } from "./data";
import { amount, count, dollars, duration } from "./format";
import { Data } from "./parts";
import { Said } from "./rich";

/** Changes of assertions that are shown at once. */
const CHANGES = 30;

type Suite = Comparison["suites"][number];
type Case = Comparison["cases"][number];
type Rate = Case["pass_rate"];
type Measure = Case["measures"][number];
type Change = Case["assertions"][number];

const WORDS: Record<Measure["measure"], string> = {
  duration_ms: "time", tokens: "tokens", cost_usd: "cost", llm_calls: "model calls", tool_calls: "tool calls",
};

/** Return whether a case got worse or better; null where there is no evidence of either. */
export function verdictOf(comparison: Comparison | null, id: string, model: string | null): "regression" | "improvement" | null {
  const found = comparison?.cases.find((one) => one.case_id === id && one.model_id === model)?.verdict;
  return found && found !== "no evidence" ? found : null;
}

function points(share: number): string {
  return `${share < 0 ? "−" : "+"}${Math.round(Math.abs(share) * 100)}`;
}

function figure(measure: Measure["measure"], value: number | null): string {
  if (measure === "duration_ms") return duration(value);
  return measure === "cost_usd" ? dollars(value) : count(value);
}

const titleOf = (one: { case_id: string; model_id: string | null }) => one.case_id + (one.model_id ? ` · ${one.model_id}` : "");

/** Return whether something of a case got better or worse. */
const tells = (one: Case) => [one.pass_rate, ...one.measures].some((test) => test.verdict !== "no evidence");

function Table({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table class="matrix">
        <thead>
          <tr>
            {["case", "measure", "before", "now", "change", "p (Holm)", "verdict"].map((title) => <th key={title} scope="col">{title}</th>)}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

export function Compared({ comparison }: { comparison: Comparison }) {
  const { first, cases } = comparison;
  const word = { regression: "Regression", improvement: "Improvement", "no evidence": "No evidence of a change" }[comparison.verdict];
  const changes = cases.flatMap((one) => one.assertions.map((change) => (
    <li key={titleOf(one) + change.id}>
      <Data>{titleOf(one)}</Data>: <code><Data>{change.id}</Data></code> {shares(change)}
    </li>
  )));
  const told = cases.filter(tells).sort((a, b) => Number(b.verdict === "regression") - Number(a.verdict === "regression"));
  const rest = cases.filter((one) => !tells(one));
  const [open, setOpen] = useState(false);
  return (
    <section aria-label="Comparison">
      <h2>Compared with <Data>{first.name}</Data></h2>
      <p>
        <strong class={`change ${comparison.verdict}`}>{word}</strong> since {amount(first.runs, "run")} of {amount(first.cases, "case")},
        started {first.started_at}.
      </p>
      <Table label="Comparison case by case">
        {comparison.suites.map((one: Suite) => (
          <RateRow key={one.model_id} name={one.model_id ? `all cases · ${one.model_id}` : "all cases"} test={one.pass_rate} />
        ))}
        {told.map((one) => [
          <RateRow key={titleOf(one)} name={titleOf(one)} test={one.pass_rate} />,
          ...one.measures.filter((test) => test.verdict !== "no evidence").map((test) => (
            <MeasureRow key={titleOf(one) + test.measure} name={titleOf(one)} test={test} />
          )),
        ])}
      </Table>
      {changes.length > 0 && (
        <>
          <h3>Assertions that passed in another share of the runs</h3>
          <ul>{changes.slice(0, CHANGES)}</ul>
          {changes.length > CHANGES && (
            <details><summary>{amount(changes.length - CHANGES, "further assertion")}</summary><ul>{changes.slice(CHANGES)}</ul></details>
          )}
        </>
      )}
      {rest.length > 0 && (
        <details onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>{amount(rest.length, "case")} without evidence of a change</summary>
          {open && (
            <Table label="Cases without evidence of a change">
              {rest.map((one) => <RateRow key={titleOf(one)} name={titleOf(one)} test={one.pass_rate} />)}
            </Table>
          )}
        </details>
      )}
      <Notes comparison={comparison} />
    </section>
  );
}

function shares(change: Change): string {
  if (!change.first_asked) return "is new";
  if (!change.second_asked) return "is gone";
  return `passed in ${change.second_passed} of ${change.second_asked} runs, before in ${change.first_passed} of ${change.first_asked}`;
}

function passed({ passed, failed, undecided, broke }: Rate["first"]): string {
  const others = [[undecided, "undecided"], [broke, "broke"]].filter(([number]) => number).map(([number, word]) => `${number} ${word}`);
  return `${passed} of ${passed + failed}${others.length ? ` (+ ${others.join(", ")})` : ""}`;
}

function RateRow({ name, test }: { name: string; test: Rate }) {
  const [low, high] = (test.interval ?? []) as number[];
  return (
    <tr>
      <th scope="row"><Data>{name}</Data></th>
      <td>passed</td>
      <td>{passed(test.first)}</td>
      <td>{passed(test.second)}</td>
      <td>
        {test.difference == null ? "?" : `${points(test.difference)} points`}
        {low != null && high != null && <span class="dim" title="confidence 0.95"> ({points(low)} to {points(high)})</span>}
      </td>
      <Verdict value={test.adjusted_p_value} verdict={test.verdict} reason={test.reason} />
    </tr>
  );
}

function MeasureRow({ name, test }: { name: string; test: Measure }) {
  return (
    <tr>
      <th scope="row"><Data>{name}</Data></th>
      <td>{WORDS[test.measure]}</td>
      <td>{figure(test.measure, test.first.median)} <span class="dim">median</span></td>
      <td>{figure(test.measure, test.second.median)} <span class="dim">median</span></td>
      <td>{test.ratio == null ? "?" : `× ${test.ratio.toFixed(2)}`}</td>
      <Verdict value={test.adjusted_p_value} verdict={test.verdict} reason={test.reason} />
    </tr>
  );
}

function Verdict({ value, verdict, reason }: { value: number | null; verdict: Rate["verdict"]; reason: string }) {
  return (
    <>
      <td>{value == null ? "" : value < 0.001 ? "< 0.001" : value.toFixed(3)}</td>
      <td><span class={`change ${verdict}`}>{verdict}</span>{reason && <div class="dim"><Said>{reason}</Said></div>}</td>
    </>
  );
}

function Notes({ comparison }: { comparison: Comparison }) {
  const notes = [
    ...comparison.only_in_first.map((one) => `Only in the earlier campaign: ${titleOf(one)}.`),
    ...comparison.only_in_second.map((one) => `Only in this campaign: ${titleOf(one)}.`),
    ...comparison.quarantined.map((one) => `In quarantine, not compared: ${titleOf(one)}.`),
    ...(comparison.shared_runs ? [`${amount(comparison.shared_runs, "run")} of both campaigns are the same: nothing was measured anew.`] : []),
    ...comparison.not_shown.map((reason) => `Not shown: ${reason}`),
  ];
  return notes.length ? <ul class="dim">{notes.map((note) => <li key={note}><Said>{note}</Said></li>)}</ul> : null;
}

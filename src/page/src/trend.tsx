// How a case went over the campaigns: `clawtrace.history/1` as a strip of bars, and campaign by campaign.
import { useState } from "preact/hooks";
import type { Case, History } from "./data";
import { amount, count, dollars, duration, median, percent } from "./format";
import { Data } from "./parts";
import { Said } from "./rich";

export type CaseHistory = History["suites"][number]["cases"][number];
type Campaign = CaseHistory["campaigns"][number];

const WORDS: Record<number, string> = { 0: "green", 1: "failed", 3: "undecided", 4: "broken" };
const FIGURES: [string, string, (value: number | undefined) => string][] = [
  ["time", "duration_ms", duration], ["tokens", "tokens", count], ["cost", "cost_usd", dollars], ["score", "score", (value) => value?.toFixed(1) ?? "?"],
];
const BAR = 7;
const HEIGHT = 18;

/** Return the history of a case with a model; undefined where there was no campaign before. */
export function historyOf(history: History | null, of: { case_id: string | null; model_id: string | null }): CaseHistory | undefined {
  const cases = history?.suites.flatMap((suite) => suite.cases) ?? [];
  const found = cases.find((one) => one.case_id === of.case_id && one.model_id === of.model_id);
  return found && found.campaigns.length > 1 ? found : undefined;
}

const wordOf = (one: Campaign) => (one.not_run ? "not whole" : (WORDS[one.exit_code] ?? "?"));
const whenOf = (one: Campaign) => one.started_at.slice(0, 16).replace("T", " ");

/** Return how many runs passed, with the interval of the rate. */
function passed(one: Campaign): string {
  const [low, high] = (one.interval ?? []) as number[];
  const ran = one.passed + one.failed + one.undecided;
  return `${one.passed} of ${ran}${low == null || high == null ? "" : ` (${percent(Math.round(low * 100) / 100)} to ${percent(Math.round(high * 100) / 100)})`}`;
}

/** A bar for each campaign, as high as its pass rate. */
export function Trend({ of }: { of: CaseHistory | undefined }) {
  if (!of) return null;
  const { campaigns } = of;
  const green = campaigns.filter((one) => wordOf(one) === "green").length;
  return (
    <svg class="trend" width={campaigns.length * BAR} height={HEIGHT} role="img" aria-label={`${green} of the last ${amount(campaigns.length, "campaign")} green`}>
      {campaigns.map((one, index) => {
        const height = Math.max(2, (one.pass_rate ?? 0) * HEIGHT);
        return (
          <rect key={one.started_at} x={index * BAR} y={HEIGHT - height} width={BAR - 2} height={height} class={wordOf(one)}>
            <title>{whenOf(one)} UTC: {wordOf(one)}, {passed(one)} passed</title>
          </rect>
        );
      })}
    </svg>
  );
}

/** The last earlier campaign in which the case was green, and what was edited since. */
export function LastGreen({ green }: { green: NonNullable<Case["last_green"]> }) {
  const said = green.edited.length > 0 ? `Edited since: ${green.edited.join(", ")}` : `Nothing known was edited since${green.unknown && `: ${green.unknown}`}`;
  return (
    <p>
      Last green: {green.started_at.slice(0, 16).replace("T", " ")} UTC, <Data>{green.campaign}</Data>. <Said>{`${said}.`}</Said>
    </p>
  );
}

/** Every case of the suites: how it went, what it takes now beside what was usual, when it broke, and which cases are flaky. */
export function Suites({ history }: { history: History }) {
  return (
    <>
      {history.suites.map((suite) => (
        <section key={`${suite.suite_id} ${suite.run_profile}`} aria-label={`History of ${suite.suite_id}`}>
          <h1><Data>{suite.suite_id}</Data> <small>run profile <Data>{suite.run_profile}</Data></small></h1>
          <SuiteTable cases={suite.cases} />
        </section>
      ))}
    </>
  );
}

const ROWS = 200;

function SuiteTable({ cases }: { cases: CaseHistory[] }) {
  const [whole, setWhole] = useState(false);
  const known = FIGURES.filter(([, name]) => cases.some((one) => name in one.campaigns.at(-1)!.measures));
  const ranked = cases.filter((one) => one.flaky).sort((a, b) => b.flaky!.at_least - a.flaky!.at_least);
  const titles = ["case", "campaigns", "passed", ...known.map(([title]) => title)];
  const shown = whole ? cases : cases.slice(0, ROWS);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Cases and campaigns">
      <table class="matrix">
        <thead>
          <tr>{titles.map((title, place) => <th key={title} scope="col" class={place > 1 ? "number" : ""}>{title}</th>)}</tr>
        </thead>
        <tbody>
          {shown.map((one) => (
            <tr key={`${one.case_id} ${one.model_id}`}>
              <th scope="row">
                <Data>{one.case_id}</Data> {one.model_id && <small class="dim"><Data>{one.model_id}</Data></small>}
                {one.flaky && <span class="tag flaky">flaky {ranked.indexOf(one) + 1}</span>}
              </th>
              <td>
                {one.campaigns.length > 1 ? <Campaigns of={one} /> : "1 campaign"}
                {one.broke && <p class="fail">Not green since {whenOf(one.broke)} UTC.</p>}
                {one.last_green && <LastGreen green={one.last_green} />}
                {one.broke && !one.last_green && <p>It was green in none of the campaigns that are kept.</p>}
              </td>
              <td class="number">{passed(one.campaigns.at(-1)!)}</td>
              {known.map(([title, name, written]) => <td key={title} class="number">{written(one.campaigns.at(-1)!.measures[name])}{times(one, name)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length < cases.length && <button type="button" class="quiet" onClick={() => setWhole(true)}>show all {amount(cases.length, "case")}</button>}
    </div>
  );
}

/** How many times the median of the earlier campaigns a figure is; nothing where it is about as large. */
function times(of: CaseHistory, name: string) {
  const values = of.campaigns.map((one) => one.measures[name]);
  const usual = median(values.slice(0, -1).filter((value) => value !== undefined));
  const now = values.at(-1);
  const said = now !== undefined && usual ? (now / usual).toFixed(2) : "1.00";
  return said !== "1.00" && <span class="dim" title="times the median of the campaigns before"> ×{said}</span>;
}

/** Every campaign with its figures, and what was edited since the case was green. */
export function Campaigns({ of }: { of: CaseHistory | undefined }) {
  if (!of) return null;
  const known = FIGURES.filter(([, name]) => of.campaigns.some((one) => name in one.measures));
  const titles = ["started (UTC)", "result", "passed", ...known.map(([title]) => title), "edited since it was green"];
  return (
    <details class="campaigns">
      <summary>
        {amount(of.campaigns.length, "campaign")} <Trend of={of} />
        {of.flaky && <span class="tag flaky">flaky: {of.flaky.otherwise} of {of.flaky.runs} equal runs came out otherwise</span>}
      </summary>
      <div class="scroll" tabIndex={0} role="region" aria-label="Campaigns of the case">
        <table class="matrix">
          <thead>
            <tr>{titles.map((title) => <th key={title} scope="col" class={FIGURES.some(([one]) => one === title) ? "number" : ""}>{title}</th>)}</tr>
          </thead>
          <tbody>
            {of.campaigns.toReversed().map((one) => (
              <tr key={one.started_at}>
                <th scope="row">{whenOf(one)}</th>
                <td>{wordOf(one)}</td>
                <td>{passed(one)}</td>
                {known.map(([title, name, written]) => <td key={title} class="number">{written(one.measures[name])}</td>)}
                <td>{one.edited.map((part) => <div key={part}><Said>{part}</Said></div>)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="dim">Newest first; <Data>{of.campaigns.at(-1)!.campaign}</Data>. Figures are medians.</p>
    </details>
  );
}

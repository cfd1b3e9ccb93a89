// How a case went over the campaigns: `clawtrace.history/1` as a strip of bars, and campaign by campaign.
import type { Case, History } from "./data";
import { amount, count, dollars, duration, percent } from "./format";
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
export function historyOf(history: History | null, of: Case): CaseHistory | undefined {
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
            <tr>{titles.map((title) => <th key={title} scope="col">{title}</th>)}</tr>
          </thead>
          <tbody>
            {of.campaigns.toReversed().map((one) => (
              <tr key={one.started_at}>
                <th scope="row">{whenOf(one)}</th>
                <td>{wordOf(one)}</td>
                <td>{passed(one)}</td>
                {known.map(([title, name, written]) => <td key={title}>{written(one.measures[name])}</td>)}
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

// What did not pass: grouped by the assertion that asked, and in it by what it said.
import { useMemo } from "preact/hooks";
import { type RunOfCase, messageOf } from "./data";
import { amount, count } from "./format";
import { StatusMark } from "./parts";
import { Said } from "./rich";
import { runLink } from "./router";

const WAYS = 50;
/** A figure with its unit; a name in backticks is kept. */
const FIGURE = /(`[^`]*`)|\d[\d.,]*(?: (?:ms|µs|s|m|%))?/g;

/** What an assertion said of some runs. */
interface Way {
  /** Of the first; where they are not all alike, they differ in figures only. */
  message: string;
  alike: boolean;
  runs: RunOfCase[];
}

/** An assertion that did not pass, or runs that broke. */
interface Cause {
  status: string;
  type: string;
  id: string;
  ways: Way[];
  runs: RunOfCase[];
}

function causesOf(all: RunOfCase[], weight: string[]): Cause[] {
  type Gathered = Cause & { said: Map<string, Way> };
  const found = new Map<string, Gathered>();
  const add = (status: string, type: string, id: string, message: string, one: RunOfCase) => {
    const key = `${status} ${type} ${id}`;
    const cause: Gathered = found.get(key) ?? { status, type, id, ways: [], runs: [], said: new Map() };
    found.set(key, cause);
    const pattern = message.replace(FIGURE, "$1#");
    const way = cause.said.get(pattern) ?? { message, alike: true, runs: [] };
    if (!way.runs.length) cause.ways.push(way);
    cause.said.set(pattern, way);
    way.alike &&= message === way.message;
    way.runs.push(one);
    cause.runs.push(one);
  };
  for (const one of all) {
    if (one.run.error) add("error", "run", "", one.run.error, one);
    for (const verdict of one.run.assertions) {
      if (verdict.status !== "pass") add(verdict.status, verdict.type, verdict.id, messageOf(one.run, verdict), one);
    }
  }
  for (const cause of found.values()) cause.ways.sort((a, b) => b.runs.length - a.runs.length);
  return [...found.values()].sort((a, b) => weight.indexOf(a.status) - weight.indexOf(b.status) || b.runs.length - a.runs.length);
}

export function Causes({ all, weight }: { all: RunOfCase[]; weight: string[] }) {
  const causes = useMemo(() => causesOf(all, weight), [all]);
  if (!causes.length) return null;
  const more = causes.slice(12);
  return (
    <section aria-label="What did not pass">
      <h2>What did not pass</h2>
      <ul class="causes">{causes.slice(0, 12).map((cause) => <OneCause key={cause.status + cause.type + cause.id} cause={cause} />)}</ul>
      {more.length > 0 && (
        <details>
          <summary>{amount(more.length, "further assertion")}</summary>
          <ul class="causes">{more.map((cause) => <OneCause key={cause.status + cause.type + cause.id} cause={cause} />)}</ul>
        </details>
      )}
    </section>
  );
}

function OneCause({ cause: { status, type, id, ways, runs } }: { cause: Cause }) {
  const [first, ...others] = ways;
  const cases = [...new Map(runs.toReversed().map((one) => [one.case.case_id, one])).values()].toReversed();
  const link = ({ runs: [one] }: { runs: RunOfCase[] }) => runLink(one!.run.run_id, id ? { verdict: id } : {});
  return (
    <li>
      <StatusMark status={status} />
      <div>
        <a href={link(first!)}><code>{id || type}</code></a>
        {id && id !== type && <span class="dim"> {type}</span>}
        {runs.length > 1 && <strong> × {count(runs.length)}</strong>}{others.length > 0 || !first!.alike ? " for example: " : " "}<Said>{first!.message}</Said>
        <div class="dim">
          {cases.slice(0, 6).map((one, place) => <>{place > 0 && ", "}<a href={link({ runs: [one] })}>{one.case.case_id}</a></>)}
          {cases.length > 6 && ` and ${count(cases.length - 6)} more`}
        </div>
        {others.length > 0 && (
          <details>
            <summary>said otherwise of {amount(runs.length - first!.runs.length, "run")}, in {amount(others.length, "way")}</summary>
            <ul>
              {others.slice(0, WAYS).map((way) => (
                <li key={way.message}><a href={link(way)}>{way.runs.length > 1 ? amount(way.runs.length, "run") : way.runs[0]!.case.case_id}</a>: <Said>{way.message}</Said></li>
              ))}
            </ul>
            {others.length > WAYS && <p class="dim">{count(others.length - WAYS)} more: see the runs.</p>}
          </details>
        )}
      </div>
    </li>
  );
}

// The verdicts of a run; the chosen one shows expected against actual, its spans, its query, and how to ask again.
import { useState } from "preact/hooks";
import { align } from "./align";
import { type Results, type Run, type Verdict, messageOf, readQuery } from "./data";
import { shown } from "./format";
import { Copyable, Data, StatusMark, TraceText } from "./parts";
import { Said } from "./rich";
import { setQuery } from "./router";

const WEIGHT = ["error", "fail", "inconclusive", "skip", "warn", "pass"];

/** What the address has in place of a verdict where none is to be open. */
const NO_VERDICT = "-";

/** Return the verdict that the address names; without one the gravest that did not pass, so that its cause is seen at once. */
export function chosenVerdict(run: Run, named: string | null): Verdict | undefined {
  if (named !== null) return run.assertions.find((one) => one.id === named);
  return byWeight(run).find((one) => one.status === "error" || one.status === "fail" || one.status === "inconclusive");
}

function byWeight(run: Run): Verdict[] {
  return [...run.assertions].sort((a, b) => WEIGHT.indexOf(a.status) - WEIGHT.indexOf(b.status));
}

export function Verdicts({ run, chosen, source }: { run: Run; chosen: string | null; source: Results["source"] }) {
  const sorted = byWeight(run);
  return (
    <>
      <h2>Verdicts</h2>
      {!sorted.length && <p class="dim">Nothing was asked of this run.</p>}
      <ul class="verdicts">
        {sorted.map((verdict) => (
          <li key={verdict.id} class={verdict.id === chosen ? "chosen" : ""}>
            <button
              type="button" aria-expanded={verdict.id === chosen}
              onClick={() => setQuery({ verdict: verdict.id === chosen ? NO_VERDICT : verdict.id })}
            >
              <StatusMark status={verdict.status} /> <code>{verdict.id}</code>
              {verdict.severity === "warn" && <span class="tag">warn only</span>}
              {verdict.known_failure && <span class="tag">known failure</span>}
              {verdict.stale && <span class="tag">stale</span>}
              <span class="message"><Said>{messageOf(run, verdict)}</Said></span>
            </button>
            {verdict.id === chosen && <Reason key={verdict.id} verdict={verdict} source={source} />}
          </li>
        ))}
      </ul>
    </>
  );
}

/** Choose a span, and bring the trace into view where it is below. */
function toSpan(id: string): void {
  setQuery({ span: id });
  document.querySelector(".waterfall")?.scrollIntoView({ block: "nearest" });
}

function Reason({ verdict, source }: { verdict: Verdict; source: Results["source"] }) {
  const [queryText, setQueryText] = useState("");
  return (
    <div class="reason">
      {verdict.description && <p><Said>{verdict.description}</Said></p>}
      <Expected verdict={verdict} />
      {verdict.hint && <p class="note"><Said>{verdict.hint}</Said></p>}
      {verdict.evidence.length > 0 && (
        <>
          <h3>Decided by</h3>
          <ul>
            {verdict.evidence.map((item, index) => (
              <li key={index}>
                {item.span_id ? (
                  <button type="button" class="link" onClick={() => toSpan(item.span_id!)}><Data>{item.name}</Data></button>
                ) : (
                  <Data>{item.name}</Data>
                )}
                {item.why && <>{item.name && ": "}<Data>{item.why}</Data></>}
              </li>
            ))}
          </ul>
        </>
      )}
      {verdict.sql && (
        <details onToggle={(event) => event.currentTarget.open && void readQuery(verdict).then(setQueryText)}>
          <summary>the query</summary>
          {queryText && <Copyable label="query" text={queryText} />}
        </details>
      )}
      {source && verdict.sql && (
        <>
          <h3>Ask again</h3>
          <Copyable label="command" text={`clawtrace query --verdict 'report.json#${verdict.verdict_id}'`} />
        </>
      )}
    </div>
  );
}

const isList = (value: unknown): value is unknown[] =>
  Array.isArray(value) && value.every((item) => typeof item === "string" || typeof item === "number");

/** Return the first list of what was found, where a list was expected: `{"tools": [...], "edits": [...]}` holds it. */
function listIn(actual: unknown): unknown {
  if (actual === null || typeof actual !== "object" || Array.isArray(actual)) return actual;
  return Object.values(actual).find((value) => isList(value)) ?? actual;
}

function Expected({ verdict }: { verdict: Verdict }) {
  const { expected } = verdict;
  const actual = isList(expected) ? listIn(verdict.actual) : verdict.actual;
  if (expected == null && actual == null) return null;
  if (isList(expected) && isList(actual)) {
    return (
      <table class="aligned">
        <thead><tr><th scope="col">expected</th><th scope="col">actual</th></tr></thead>
        <tbody>
          {align(expected, actual, (a, b) => a === b).map((pair, index) => (
            <tr key={index} class={pair.left === null ? "added" : pair.right === null ? "missing" : ""}>
              <td>{pair.left === null ? "" : <Data>{String(pair.left)}</Data>}</td>
              <td>{pair.right === null ? "" : <Data>{String(pair.right)}</Data>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    );
  }
  const left = shown(expected);
  const right = shown(actual);
  if (Math.max(left.length, right.length) < 4000 && left.includes("\n") && right.includes("\n")) {
    const rows = align(left.split("\n"), right.split("\n"), (a, b) => a === b);
    if (rows.some((pair) => pair.left !== null && pair.right !== null)) return (
      <table class="aligned code">
        <thead><tr><th scope="col">expected</th><th scope="col">actual</th></tr></thead>
        <tbody>
          {rows.map((pair, index) => (
            <tr key={index} class={pair.left === null ? "added" : pair.right === null ? "missing" : ""}>
              <td>{pair.left ?? ""}</td>
              <td>{pair.right ?? ""}</td>
            </tr>
          ))}
        </tbody>
      </table>
    );
  }
  return (
    <div class="pair">
      <div><h3>Expected</h3><TraceText label="expected" text={left} /></div>
      <div><h3>Actual</h3><TraceText label="actual" text={right} /></div>
    </div>
  );
}

// Two runs side by side, aligned call by call.
import { useMemo } from "preact/hooks";
import { align } from "./align";
import { type Results, type RunDetails, type RunOfCase, runsOf } from "./data";
import { costOf, count, duration, plain, tokensOf } from "./format";
import { Data, StatusMark } from "./parts";
import { overviewLink, runLink } from "./router";
import { useDetails } from "./run";

/** Characters of arguments and answers that are shown. */
const LONGEST = 600;

interface Call {
  span: string | null;
  kind: string;
  name: string;
  agent: string;
  arguments: string | null;
  /** What the model answered, or the tool returned. */
  answer: string | null;
  outcome: string | null;
}

function callsOf(details: RunDetails): Call[] {
  const place = new Map(details.spans.map((span, index) => [span.span_id, { span, index }]));
  const agents = new Map(details.agents.map((one) => [one.span_id, one.name ?? ""]));
  const agent = (id: string | null) => (id ? (agents.get(id) ?? "") : "");
  const answers = new Map<string, string>();
  for (const part of details.messages) {
    if (part.direction === "output" && part.type === "text") answers.set(part.span_id, `${answers.get(part.span_id) ?? ""}${part.text ?? ""}`);
  }
  const calls: Call[] = [
    ...details.model_calls.map((call) => ({
      span: call.span_id, kind: "llm", name: call.model ?? "model", agent: agent(call.agent_span_id), arguments: null,
      answer: answers.get(call.span_id) ?? null, outcome: call.outcome,
    })),
    ...details.tool_calls.map((call) => ({
      span: call.span_id, kind: "tool", name: call.name ?? "?", agent: agent(call.agent_span_id), arguments: call.arguments,
      answer: call.result, outcome: call.outcome,
    })),
  ];
  const start = (call: Call) => place.get(call.span ?? "")?.span.start_us ?? Infinity;
  return calls.sort((a, b) => start(a) - start(b));
}

export function Diff({ results, left, right }: { results: Results; left: string; right: string }) {
  const all = useMemo(() => runsOf(results), [results]);
  const [a, b] = [left, right].map((id) => all.find((one) => one.run.run_id === id));
  const [x, y] = [useDetails(left), useDetails(right)];
  if (!a || !b) return <p class="wait">One of the two runs is not in these results. <a href={overviewLink(new URLSearchParams())}>All runs</a></p>;
  return (
    <section aria-label="Two runs">
      <nav class="steps"><a href={overviewLink(new URLSearchParams())}>all runs</a></nav>
      <h1>Two runs of <Data>{a.case.title || a.case.case_id}</Data></h1>
      <div class="scroll" tabIndex={0} role="region" aria-label="Figures of both runs">
        <table class="matrix">
          <thead><tr><th scope="col">of the run</th>{[a, b].map((one) => <Title key={one.run.run_id} one={one} />)}</tr></thead>
          <tbody>
            <tr><th scope="row">status</th>{[a, b].map((one, index) => <td key={index}><StatusMark status={one.run.status} /></td>)}</tr>
            <tr><th scope="row">duration</th>{[a, b].map((one, index) => <td key={index}>{duration(one.run.trace.duration_ms)}</td>)}</tr>
            <tr><th scope="row">tokens</th>{[a, b].map((one, index) => <td key={index}>{tokensOf(one.run).text}</td>)}</tr>
            <tr><th scope="row">cost</th>{[a, b].map((one, index) => <td key={index}>{costOf(one.run).text}</td>)}</tr>
            {verdictsThatDiffer(a, b).map(([id, first, second]) => (
              <tr key={id} class="differs"><th scope="row"><code>{id}</code></th><td><StatusMark status={first} /></td><td><StatusMark status={second} /></td></tr>
            ))}
          </tbody>
        </table>
      </div>
      <h2>Call by call</h2>
      {x && y ? <Calls left={callsOf(x)} right={callsOf(y)} ids={[left, right]} /> : <p class="dim">{x === null || y === null ? "The spans of one of them are not in this file." : "Reading the spans …"}</p>}
    </section>
  );
}

function Title({ one }: { one: RunOfCase }) {
  return <th scope="col"><a href={runLink(one.run.run_id)}>{one.case.model_id ?? ""} repetition {one.run.repetition}</a></th>;
}

function verdictsThatDiffer(a: RunOfCase, b: RunOfCase): [string, string, string][] {
  const other = new Map(b.run.assertions.map((one) => [one.id, one.status]));
  return a.run.assertions.flatMap((one) => {
    const second = other.get(one.id);
    return second !== undefined && second !== one.status ? [[one.id, one.status, second] as [string, string, string]] : [];
  });
}

function Calls({ left, right, ids }: { left: Call[]; right: Call[]; ids: [string, string] }) {
  const rows = align(left, right, (a, b) => a.kind === b.kind && a.agent === b.agent && (a.kind === "llm" || a.name === b.name));
  const differs = (a: Call | null, b: Call | null) => a && b && (a.arguments !== b.arguments || a.answer !== b.answer || a.outcome !== b.outcome || a.name !== b.name);
  return (
    <table class="aligned calls">
      <thead><tr><th scope="col">first</th><th scope="col">second</th></tr></thead>
      <tbody>
        {rows.map((pair, index) => (
          <tr key={index} class={!pair.left ? "added" : !pair.right ? "missing" : differs(pair.left, pair.right) ? "differs" : ""}>
            <td><CallText call={pair.left} other={pair.right} run={ids[0]} /></td>
            <td><CallText call={pair.right} other={pair.left} run={ids[1]} /></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A text, with the words marked that the other has not; long ones are cut. */
function Words({ text, other }: { text: string; other: string | null | undefined }) {
  const cut = (whole: string) => whole.slice(0, LONGEST).match(/\w+|\s+|[^\w\s]/g) ?? [];
  const more = text.length > LONGEST && ` … ${count(text.length)} characters`;
  if (other == null || other === text) return <>{plain(text.slice(0, LONGEST))}{more}</>;
  const words = align(cut(text), cut(other), (a, b) => a === b).filter((pair) => pair.left !== null);
  return <>{words.map((pair, index) => (pair.right === null ? <mark key={index}>{plain(pair.left!)}</mark> : plain(pair.left!)))}{more}</>;
}

function CallText({ call, other, run }: { call: Call | null; other: Call | null; run: string }) {
  if (!call) return null;
  const name = <Data>{call.name}</Data>;
  return (
    <>
      <span class={`kind ${call.kind}`}>{call.kind === "llm" ? "model" : "tool"}</span> {call.span ? <a href={runLink(run, { span: call.span })}>{name}</a> : name}
      {call.agent && <span class="dim"> in {plain(call.agent)}</span>}
      {call.outcome !== "ok" && <span class="fail"> {call.outcome ?? "unknown"}</span>}
      {call.arguments && <div class="dim arguments"><Words text={call.arguments} other={other?.arguments} /></div>}
      {call.answer && <div class="dim answer">→ <Words text={call.answer} other={other?.answer} /></div>}
    </>
  );
}

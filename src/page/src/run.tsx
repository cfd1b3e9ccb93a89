// One run: what it did as a waterfall of spans, its verdicts, and what the chosen span holds.
import { useEffect, useMemo, useState } from "preact/hooks";
import { Conversation } from "./conversation";
import { type History, type Results, type RunDetails, type RunOfCase, readRun, runsOf } from "./data";
import { doubtsOf, useHits, wantedOf } from "./find";
import { amount, costOf, count, dollars, duration, tokensOf } from "./format";
import { Keys } from "./keys";
import { Copyable, Data, Fact, StatusMark, TraceText } from "./parts";
import { Needle, Said } from "./rich";
import { diffLink, overviewLink, runLink, setQuery } from "./router";
import { Search } from "./search";
import { SpanPanel } from "./span";
import { Campaigns, type CaseHistory, LastGreen, historyOf } from "./trend";
import { Verdicts, chosenVerdict } from "./verdicts";
import { Waterfall } from "./waterfall";

/** Return the spans of a run once they are unpacked; undefined until then, null where they are not in this file. */
export function useDetails(id: string): RunDetails | null | undefined {
  const [read, setRead] = useState<{ id: string; details: RunDetails | null }>();
  useEffect(() => {
    let left = false;
    const done = (details: RunDetails | null) => !left && setRead({ id, details });
    readRun(id).then(done, () => done(null));
    return () => {
      left = true;
    };
  }, [id]);
  return read?.id === id ? read.details : undefined; // never those of the run that was shown before
}

interface Shown {
  results: Results;
  history?: History | null;
  /** Undefined until they are read, null where there are none. */
  details: RunDetails | null | undefined;
  id: string;
  query: URLSearchParams;
}

export function RunPage({ results, history, details, id, query }: Shown) {
  const all = useMemo(() => runsOf(results), [results]);
  const place = all.findIndex((one) => one.run.run_id === id);
  const found = all[place];
  const verdict = found && chosenVerdict(found.run, query.get("verdict"));
  const marks = verdict?.evidence.flatMap((item) => item.span_id ?? []).join(" ") ?? "";
  const marked = useMemo(() => new Set(marks ? marks.split(" ") : []), [marks]);
  const doubts = useMemo(() => (details ? doubtsOf(details) : new Map<string, string>()), [details]);
  const asked = wantedOf(query);
  const hits = useHits(details, asked.text);
  const talks = query.get("view") === "talk";
  const choose = (chosen: string | null) => setQuery({ span: chosen });
  if (!found) {
    return <p class="wait">There is no run <code>{id}</code> in these results. <a href={overviewLink(new URLSearchParams())}>All runs</a></p>;
  }
  const wanted = query.get("span");
  const span = details?.spans.find((one) => one.span_id === wanted);
  return (
    <>
      <Head found={found} all={all} place={place} history={historyOf(history ?? null, found.case)} />
      <div class="columns">
        <section aria-label="Verdicts" class="side">
          <Verdicts run={found.run} chosen={verdict?.id ?? null} source={results.source} />
        </section>
        <section aria-label="Trace" class="trace">
          <SimulatedUser said={found.run.conversation as unknown as Dialogue} />
          {details === undefined && <p class="dim">Reading the spans …</p>}
          {details === null && <NoSpans found={found} />}
          {details && (
            <Needle.Provider value={asked.text}>
              <div class={talks ? "talks" : ""}>
                <div class="tools">
                  <span class="views" role="group" aria-label="View">
                    <button type="button" aria-pressed={!talks} onClick={() => setQuery({ view: null })}>Trace</button>
                    <button type="button" aria-pressed={talks} onClick={() => setQuery({ view: "talk" })}>Conversation</button>
                  </span>
                  <Search text={asked.text} hits={hits} chosen={wanted} choose={choose} />
                  <Keys />
                </div>
                {talks ? (
                  <Conversation key={id} details={details} marked={marked} chosen={wanted} doubts={doubts} />
                ) : (
                  <Waterfall
                    key={id} details={details} marked={marked} hits={hits} chosen={span?.span_id ?? null} wanted={asked} doubts={doubts} choose={choose}
                  />
                )}
              </div>
              {!talks && span && <SpanPanel span={span} details={details} />}
              {!talks && !span && <Answer details={details} />}
              <Open details={details} />
            </Needle.Provider>
          )}
        </section>
      </div>
    </>
  );
}

function Head({ found, all, place, history }: { found: RunOfCase; all: RunOfCase[]; place: number; history: CaseHistory | undefined }) {
  const { run, case: one } = found;
  const others = all.filter((other) => other.case.case_id === one.case_id && other.run.run_id !== run.run_id);
  const green = run.status === "pass" ? [] : others.filter((other) => other.run.status === "pass");
  const passed = green.findLast((other) => other.case.model_id === one.model_id) ?? green.at(-1);
  const before = all[place - 1];
  const after = all[place + 1];
  return (
    <section class={`outcome ${run.error ? "error" : (run.status ?? "none")}`} aria-label="Run">
      <nav aria-label="Runs" class="steps">
        <a href={overviewLink(new URLSearchParams())}>all runs</a>
        {before && <a href={runLink(before.run.run_id)}>← previous</a>}
        {after && <a href={runLink(after.run.run_id)}>next →</a>}
        {passed && <a href={diffLink(passed.run.run_id, run.run_id)}>compare with a run that passed</a>}
        {others.length > 0 && (
          <label>
            Compare with{" "}
            <select onChange={(event) => event.currentTarget.value && (location.hash = diffLink(run.run_id, event.currentTarget.value))}>
              <option value="">…</option>
              {others.slice(0, 200).map((other) => (
                <option key={other.run.run_id} value={other.run.run_id}>
                  {other.case.model_id ?? ""} repetition {other.run.repetition}, {other.run.error ? "error" : (other.run.status ?? "nothing asked")}
                </option>
              ))}
            </select>
          </label>
        )}
      </nav>
      <h1>
        <StatusMark status={run.error ? "error" : run.status} /> <Data>{one.title || one.case_id}</Data>
        {one.model_id && <small> {one.model_id}</small>} <small>repetition {run.repetition}</small>
      </h1>
      {run.error && <p class="fail"><Said>{run.error}</Said></p>}
      {run.outcome !== "passed" && one.last_green && <LastGreen green={one.last_green} />}
      <dl class="facts">
        <Fact name="duration">{duration(run.trace.duration_ms)}</Fact>
        <Fact name="tokens">{tokensOf(run).text}</Fact>
        <Fact name="cost">{costOf(run).text}</Fact>
        {run.final_score != null && <Fact name="judge's score">{run.final_score}</Fact>}
        <Fact name="trace">
          {amount(run.trace.spans, "span")}, {run.trace.complete ? "complete" : run.trace.complete === false ? "incomplete" : "no trace"}
          {run.trace.closed_by && ` (closed by ${run.trace.closed_by})`}
        </Fact>
        {run.run_status && <Fact name="process">{run.run_status}</Fact>}
        <Fact name="run id"><code>{run.run_id}</code></Fact>
      </dl>
      <Campaigns of={history} />
      {run.trace.incomplete_because.map((reason) => <p key={reason} class="note">Incomplete: <Said>{reason}</Said></p>)}
      {run.diagnostics.map((note) => <p key={note} class="note"><Said>{note}</Said></p>)}
    </section>
  );
}

/** What a run's `conversation` holds; nothing where no simulated user played. */
interface Dialogue {
  turns?: { user: string; agent: string | null; by: string }[];
  end: string | null;
  why: string;
  goal: string;
  persona: string;
  model: string;
  input_tokens: number | null;
  output_tokens: number | null;
  cost_usd: number | null;
}

/** What a simulated user and the agent said, turn by turn, and why it ended. */
function SimulatedUser({ said }: { said: Dialogue | undefined }) {
  if (!said?.turns) return null;
  return (
    <details class="panel" open>
      <summary>
        Conversation with a simulated user: <b>{said.end ?? "broken off"}</b> after {amount(said.turns.length, "turn")}
      </summary>
      {said.why && <p><Data>{said.why}</Data></p>}
      <p class="dim">
        Goal: <Data>{said.goal}</Data> {said.persona && <>Persona: <Data>{said.persona}</Data></>} Played by <Data>{said.model}</Data>:{" "}
        {count(said.input_tokens == null || said.output_tokens == null ? null : said.input_tokens + said.output_tokens)} tokens, cost {dollars(said.cost_usd)}, apart from the run's own.
      </p>
      {said.turns.map((turn, index) => (
        <div key={index}>
          <h3>{index + 1}. {turn.by === "opening" ? "user, as the case opens" : "simulated user"}</h3>
          <TraceText label={`message ${index + 1} of the user`} text={turn.user} />
          <h3>agent</h3>
          {turn.agent == null ? <p class="dim">no answer</p> : <TraceText label={`answer ${index + 1} of the agent`} text={turn.agent} />}
        </div>
      ))}
    </details>
  );
}

function NoSpans({ found }: { found: RunOfCase }) {
  if (!found.run.trace.spans) return <p>No span of this run was received.</p>;
  return (
    <div>
      <p>The spans of this run are not in this file: it holds those of the first runs only. This shows them:</p>
      <Copyable label="command" text={`clawtrace inspect --store STORE --run-id ${found.run.run_id}`} />
    </div>
  );
}

const RELATION: Record<string, string> = {
  llm_calls: "model calls", tool_calls: "tool calls", agents: "agents", spans: "spans", messages: "messages", tool_requests: "tool requests",
};

function howMany({ at_most: most, relation }: RunDetails["gaps"][number]): string {
  const things = RELATION[relation] ?? relation;
  return most == null ? `any number of ${things}` : `at most ${amount(most, things.slice(0, -1))}`;
}

/** What the spans leave open: rows that may not exist, rows that may be missing, and what was asked for in vain. */
function Open({ details }: { details: RunDetails }) {
  const doubts = new Map<string, number>();
  for (const one of details.doubts.filter((doubt) => doubt.column_name == null)) {
    const text = `${RELATION[one.relation] ?? one.relation}: ${one.because}`;
    doubts.set(text, (doubts.get(text) ?? 0) + 1);
  }
  if (!doubts.size && !details.gaps.length && !details.tool_requests.length) return null;
  return (
    <div>
      <h2>What the spans leave open</h2>
      {[...doubts].map(([text, number]) => (
        <p key={text} class="note">In doubt: {number > 1 && `${count(number)} `}<Said>{text}</Said></p>
      ))}
      {details.gaps.map((gap, index) => (
        <p key={index} class="note">
          May be missing: {howMany(gap)}
          {gap.name && <> (<Data>{gap.name}</Data>)</>}: <Said>{gap.because}</Said>
        </p>
      ))}
      {details.tool_requests.map((one) => (
        <p key={one.request_no} class="note">Asked for, not run ({one.reason}): <Data>{one.name ?? "a tool without a name"}</Data></p>
      ))}
    </div>
  );
}

function Answer({ details }: { details: RunDetails }) {
  return (
    <div class="panel">
      <h2>Final answer</h2>
      {details.final_output == null ? (
        <p class="dim">unknown: no span records it</p>
      ) : (
        <TraceText label="final answer" text={details.final_output} />
      )}
      <p class="dim">Choose a span to see its messages, arguments and result.</p>
    </div>
  );
}

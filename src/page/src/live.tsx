// The runs of a service as they come: a list, and the view of one run that reports have.
import { useEffect, useRef, useState } from "preact/hooks";
import type { History, ListedRun, RunList } from "./data";
import { amount, costOf, count, tokensOf, totalOf } from "./format";
import { Data, Frame, StatusMark } from "./parts";
import { Said } from "./rich";
import { HISTORY, overviewLink, runLink, setQuery, usePlace } from "./router";
import { RunPage } from "./run";
import { follow, givenToken, keepToken, type LiveRun, readHistory, readLiveRun, readRuns, Refusal } from "./service";
import { Suites, Trend, historyOf } from "./trend";

const LAST = 500;
const APART_MS = 1000;

type Answer<T> = { value: T | null; error: Error | null };

/** Return what a question about the service is answered with now; asked again when something happens there, at most once a second. */
function useAsked<T>(token: string, ask: () => Promise<T>, key: string): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({ value: null, error: null });
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    let over = false;
    let asking = false;
    let again = false;
    setAnswer({ value: null, error: null });
    const look = async () => {
      if (asking) {
        again = true;
        return;
      }
      asking = true;
      again = false;
      try {
        const value = await latest.current();
        if (!over) setAnswer({ value, error: null });
      } catch (problem) {
        if (!over) setAnswer((before) => ({ value: before.value, error: problem as Error }));
      }
      await new Promise((resolve) => setTimeout(resolve, APART_MS));
      asking = false;
      if (again && !over) void look();
    };
    void look();
    const end = follow(token, () => void look());
    return () => {
      over = true;
      end();
    };
  }, [token, key]);
  return answer;
}

export function Live() {
  const [token, setToken] = useState(givenToken);
  const [refused, setRefused] = useState("");
  const place = usePlace();
  const id = place.view === "run" ? (place.ids[0] ?? "") : "";
  const history = useHistory(token, `${place.view} ${id}`);
  document.title = `${id || location.host} · clawtrace`;
  useEffect(() => {
    scrollTo(0, 0);
  }, [place.view, id]);
  const use = (given: string, why = "") => {
    keepToken(given);
    setToken(given);
    setRefused(why);
  };
  const turnedAway = (error: Error | null) => {
    if (error instanceof Refusal && error.status === 401) use("", "The service refuses this token.");
  };
  return (
    <Frame title={location.host} foot="What the service holds, as it comes.">
      {!token ? (
        <TokenForm refused={refused} use={use} />
      ) : id ? (
        <Run key={id} token={token} id={id} query={place.query} history={history} turnedAway={turnedAway} />
      ) : place.view === "history" ? (
        <>
          <nav class="steps"><a href={overviewLink(new URLSearchParams())}>all runs</a></nav>
          {history ? <Suites history={history} /> : <p class="wait">No campaign is kept in the folder of results.</p>}
        </>
      ) : (
        <Runs token={token} query={place.query} history={history} turnedAway={turnedAway} />
      )}
    </Frame>
  );
}

/** Return what the campaigns came to, as it is when a view is opened. */
function useHistory(token: string, view: string): History | null {
  const [history, setHistory] = useState<History | null>(null);
  useEffect(() => {
    if (token) readHistory(token).then(setHistory, () => setHistory(null)); // why not is what the runs' answer says
  }, [token, view]);
  return history;
}

function TokenForm({ refused, use }: { refused: string; use: (token: string) => void }) {
  const [typed, setTyped] = useState("");
  return (
    <section aria-label="Token">
      <h1>Token</h1>
      {refused && <p class="note" role="alert">{refused}</p>}
      <p>
        The service answers with its token only: <code>token</code> of its ready file (<code>clawtrace serve --ready-file
        FILE</code>), or what <code>CLAWTRACE_SERVER_TOKEN</code> was set to.
      </p>
      <form
        class="tools"
        onSubmit={(event) => {
          event.preventDefault();
          if (typed.trim()) use(typed.trim());
        }}
      >
        <label>
          Token <input type="password" autocomplete="off" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
        </label>
        <button type="submit">show the runs</button>
      </form>
    </section>
  );
}

interface Asked {
  token: string;
  query: URLSearchParams;
  history: History | null;
  turnedAway: (error: Error | null) => void;
}

function Standing({ error }: { error: Error | null }) {
  return (
    <span class={error ? "note" : "dim"} role="status">
      {!error ? "live" : error instanceof Refusal ? error.message : "the service does not answer; asking again"}
    </span>
  );
}

function Run({ token, id, query, history, turnedAway }: Asked & { id: string }) {
  const { value, error } = useAsked<LiveRun>(token, () => readLiveRun(token, id), id);
  useEffect(() => turnedAway(error), [error]);
  return (
    <>
      <Standing error={error} />
      {value && <RunPage results={value.results} history={history} details={value.details} id={id} query={query} />}
    </>
  );
}

function Runs({ token, query, history, turnedAway }: Asked) {
  const { value, error } = useAsked<RunList>(token, () => readRuns(token, LAST), "");
  useEffect(() => turnedAway(error), [error]);
  const text = query.get("q") ?? "";
  const fits = (run: ListedRun) =>
    [run.run_id, run.case_id, run.model_id, ...run.agents, ...run.models].join(" ").toLowerCase().includes(text.toLowerCase());
  const shown = value?.runs.filter(fits).reverse() ?? [];
  return (
    <section aria-label="Runs">
      <div class="tools">
        <h1>Runs</h1>
        <label>
          Filter <input
            type="search" value={text} placeholder="run, case, agent, model" id="filter"
            onInput={(event) => setQuery({ q: event.currentTarget.value })}
          />
        </label>
        <Standing error={error} />
        {value && <span class="dim">{amount(value.total, "run")}{value.total > value.runs.length && `, the last ${count(value.runs.length)} shown`}</span>}
        {history && <a href={HISTORY}>history of the campaigns</a>}
      </div>
      {value && !value.runs.length && <p class="dim">No run has come yet. Agents export to {location.origin}.</p>}
      {shown.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="List of runs">
          <table class="matrix list">
            <thead>
              <tr>{["run", "agent", "model", "trace", "tokens", "cost", "tool calls", "verdicts"].map((name) => <th key={name} scope="col">{name}</th>)}</tr>
            </thead>
            <tbody>{shown.map((run) => <Row key={run.run_id} run={run} history={history} />)}</tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Row({ run, history }: { run: ListedRun; history: History | null }) {
  return (
    <tr>
      <th scope="row">
        <a href={runLink(run.run_id)}><Data>{run.run_id}</Data></a>
        {run.case_id && run.case_id !== run.run_id && <div class="dim"><Data>{run.case_id}</Data></div>}
      </th>
      <td class="name"><Names of={run.agents} /></td>
      <td class="name"><Names of={run.models.length ? run.models : run.model_id ? [run.model_id] : []} /></td>
      <td><Trace run={run} /></td>
      <td class="numbers">{tokensOf(run).text}</td>
      <td class="numbers">{costOf(run).text}</td>
      <td class="numbers">{totalOf(run, "tool_calls")}</td>
      <td>
        {run.verdicts
          ? Object.entries(run.verdicts).map(([status, number]) => <div key={status} class="verdict">{number} <StatusMark status={status} /></div>)
          : <span class="dim">none</span>}
        <Trend of={historyOf(history, run)} />
      </td>
    </tr>
  );
}

function Names({ of }: { of: string[] }) {
  if (!of.length) return <>?</>;
  return <><Data>{of.slice(0, 3).join(", ")}</Data>{of.length > 3 && ` and ${of.length - 3} more`}</>;
}

function Trace({ run }: { run: ListedRun }) {
  if (run.closed_by === null) return <span>open, {amount(run.spans, "span")}</span>;
  if (run.complete) return <span>complete, {amount(run.spans, "span")}</span>;
  if (run.complete === null) return <span class="note">no spans</span>;
  return (
    <>
      <span>incomplete, {amount(run.spans, "span")}</span>
      {run.incomplete_because.map((reason) => <div key={reason} class="note"><Said>{reason}</Said></div>)}
    </>
  );
}

// The control service that sent this page (docs: sidecar.md): what is asked of it, and how its events are followed.
import type { History, Results, RunDetails, RunList } from "./data";

const API = "/clawtrace/v1";
const KEPT = "clawtrace-token";
const AGAIN_MS = 3000;

/** What the page shows of one run. */
export interface LiveRun {
  results: Results;
  details: RunDetails;
}

/** The service refuses the request; `status` says how. */
export class Refusal extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

/** Return the token: of the address, from which it is then taken away, else of this tab. */
export function givenToken(): string {
  const named = /^#token=(.+)$/.exec(location.hash);
  if (named) {
    keepToken(decodeURIComponent(named[1]!));
    history.replaceState(null, "", "#/");
  }
  return sessionStorage.getItem(KEPT) ?? "";
}

/** Keep the token as long as this tab is open. */
export function keepToken(token: string): void {
  if (token) sessionStorage.setItem(KEPT, token);
  else sessionStorage.removeItem(KEPT);
}

async function ask(path: string, token: string, signal?: AbortSignal): Promise<Response> {
  const answer = await fetch(API + path, { headers: { authorization: `Bearer ${token}` }, signal: signal ?? null, cache: "no-store" });
  if (answer.ok) return answer;
  const said = (await answer.json().catch(() => ({}))) as { message?: string };
  throw new Refusal(answer.status, said.message ?? `the service answered ${answer.status}`);
}

/** Return the last runs. */
export async function readRuns(token: string, last: number): Promise<RunList> {
  return (await ask(`/runs?last=${last}`, token)).json() as Promise<RunList>;
}

/** Return what is known of a run. */
export async function readLiveRun(token: string, id: string): Promise<LiveRun> {
  return (await ask(`/runs/${encodeURIComponent(id)}/page`, token)).json() as Promise<LiveRun>;
}

/** Return what the project's campaigns came to; null where there were none. */
export async function readHistory(token: string): Promise<History | null> {
  return (await ask("/history", token)).json() as Promise<History | null>;
}

/** Call `changed` when something happens in the service, and when it has been asked again after it did not answer; return what ends this. */
export function follow(token: string, changed: () => void): () => void {
  const ended = new AbortController();
  const listen = async () => {
    while (!ended.signal.aborted) {
      try {
        const reader = (await ask("/events", token, ended.signal)).body!.getReader();
        for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
          if (piece.value.length > 1) changed(); // an empty line says only that the service is there
        }
      } catch {
        // The service has ended, or too many follow: `changed` says so where it cannot be asked either.
      }
      if (ended.signal.aborted) return;
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      changed();
    }
  };
  void listen();
  return () => ended.abort();
}

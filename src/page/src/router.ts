// Where in the page a link leads: the part of the address after `#`.
import { useEffect, useState } from "preact/hooks";

export interface Place {
  view: "overview" | "run" | "diff" | "history";
  ids: string[];
  query: URLSearchParams;
}

function here(): Place {
  const [path = "", query = ""] = location.hash.slice(1).split("?");
  const [view, ...ids] = path.split("/").filter(Boolean).map(decodeURIComponent);
  const known = view === "run" || view === "diff" || view === "history" ? view : "overview";
  return { view: known, ids, query: new URLSearchParams(query) };
}

/** Return the place that the address names, and follow it. */
export function usePlace(): Place {
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const follow = () => setPlace(here());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return place;
}

export function overviewLink(query: URLSearchParams): string {
  const text = query.toString();
  return `#/${text ? `?${text}` : ""}`;
}

export function runLink(run: string, chosen: { verdict?: string; span?: string } = {}): string {
  const query = new URLSearchParams(chosen as Record<string, string>).toString();
  return `#/run/${encodeURIComponent(run)}${query ? `?${query}` : ""}`;
}

export const HISTORY = "#/history";

export function diffLink(left: string, right: string): string {
  return `#/diff/${encodeURIComponent(left)}/${encodeURIComponent(right)}`;
}

/** Change the query of the address without a step in the history. */
export function setQuery(changes: Record<string, string | null>): void {
  const [path = "", old = ""] = location.hash.slice(1).split("?");
  const query = new URLSearchParams(old);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  history.replaceState(null, "", `#${path || "/"}${text ? `?${text}` : ""}`);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

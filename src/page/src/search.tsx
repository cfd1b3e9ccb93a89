// The search in a run: how many spans have the text, and from one to the next.
import { amount, count } from "./format";
import { setQuery } from "./router";

interface Shown {
  text: string;
  /** The spans that have it, in the order of the run. */
  hits: string[];
  chosen: string | null;
  choose: (span: string) => void;
}

export function Search({ text, hits, chosen, choose }: Shown) {
  const now = chosen === null ? -1 : hits.indexOf(chosen);
  const seek = (step: 1 | -1) => {
    if (hits.length) choose(hits[now < 0 ? (step > 0 ? 0 : hits.length - 1) : (now + step + hits.length) % hits.length]!);
  };
  return (
    <>
      <input
        type="search" id="find" aria-label="Search in names, arguments, results and messages" placeholder="search names, arguments, results"
        value={text} onInput={(event) => setQuery({ find: event.currentTarget.value })}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          event.preventDefault();
          seek(event.shiftKey ? -1 : 1);
        }}
      />
      {text && (
        <>
          <button type="button" class="quiet" aria-label="Previous place" onClick={() => seek(-1)}>‹</button>
          <button type="button" class="quiet" aria-label="Next place" onClick={() => seek(1)}>›</button>
          <span class="dim" role="status">{hits.length ? `${now >= 0 ? `${count(now + 1)} of ` : ""}${amount(hits.length, "span")}` : "nowhere"}</span>
        </>
      )}
    </>
  );
}

// The keys of a run's page.
import { useEffect, useRef } from "preact/hooks";

const KEYS: [string, string][] = [
  ["/", "search in names, arguments, results and messages"],
  ["Enter, Shift+Enter", "in the search: next, previous place"],
  ["↑ ↓ j k, Page Up, Page Down, Home, End", "choose a span"],
  ["← →", "fold, unfold"],
  ["+ −", "enlarge, reduce the time"],
  ["Shift+← Shift+→", "earlier, later"],
  ["f", "frame the chosen span"],
  ["0", "the whole run"],
  ["Escape", "leave the span"],
  ["?", "these keys"],
];

/** A button that shows the keys, as `?` does; `/` goes to the search. */
export function Keys() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || (event.target as Element).closest("input, select, textarea")) return;
      if (event.key === "?") dialog.current?.showModal();
      else if (event.key === "/") document.getElementById("find")?.focus();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  return (
    <>
      <button type="button" class="quiet" aria-label="Keys" onClick={() => dialog.current?.showModal()}>?</button>
      <dialog ref={dialog} aria-label="Keys" onClick={(event) => event.target === dialog.current && dialog.current?.close()}>
        <table class="keys">
          <tbody>{KEYS.map(([key, does]) => <tr key={key}><th scope="row"><kbd>{key}</kbd></th><td>{does}</td></tr>)}</tbody>
        </table>
        <p class="dim">On the strip: drag to show a part, double-click for all. On the bars: drag to move, Ctrl or ⌘ and the wheel to enlarge.</p>
        <form method="dialog"><button autofocus>close</button></form>
      </dialog>
    </>
  );
}

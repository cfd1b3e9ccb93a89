// Small parts that several views use.
import { type ComponentChildren, Fragment } from "preact";
import { useContext, useState } from "preact/hooks";
import { plain } from "./format";
import { Found, Needle } from "./rich";
import { overviewLink } from "./router";
import { ThemeSwitch } from "./theme";

const SIGN: Record<string, string> = {
  pass: "✓", fail: "✗", error: "‼", inconclusive: "?", skip: "–", warn: "!", none: "·",
};

/** What stands around every view. */
export function Frame({ title, foot, children }: { title: string; foot: string; children: ComponentChildren }) {
  return (
    <>
      <header class="bar">
        <a class="brand" href={overviewLink(new URLSearchParams())}>clawtrace</a>
        <span class="where"><Data>{title}</Data></span>
        <ThemeSwitch />
      </header>
      <main>{children}</main>
      <footer>{foot}</footer>
    </>
  );
}

/** The word of a status with its sign, so that colour is never all there is. */
export function StatusMark({ status, short = false }: { status: string | null; short?: boolean }) {
  const word = status ?? "none";
  return (
    <span class={`status ${word}`}>
      <span aria-hidden="true">{SIGN[word] ?? "·"}</span>
      <span class={short ? "unseen" : ""}>{word === "none" ? "nothing asked" : word}</span>
    </span>
  );
}

/** A text from a trace: data, with what cannot be seen made visible; long ones open on demand. */
export function TraceText({ text, label, most = 1200 }: { text: string; label: string; most?: number }) {
  const [open, setOpen] = useState(false);
  const long = text.length > most;
  return (
    <div class="text">
      <pre tabIndex={0} aria-label={label}><Found>{long && !open ? `${text.slice(0, most)} …` : text}</Found></pre>
      {long && (
        <button type="button" class="quiet" onClick={() => setOpen(!open)}>
          {open ? "show less" : `show all ${text.length.toLocaleString("en-US")} characters`}
        </button>
      )}
    </div>
  );
}

/** A button that copies a text. */
export function CopyButton({ text, label, name = "copy" }: { text: () => string; label: string; name?: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text());
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  return <button type="button" class="quiet" onClick={copy} aria-label={`Copy ${label}`}>{copied ? "copied" : name}</button>;
}

/** A text with a button that copies it. */
export function Copyable({ text, label }: { text: string; label: string }) {
  return (
    <div class="copy">
      <pre tabIndex={0} aria-label={label}>{plain(text)}</pre>
      <CopyButton text={() => text} label={label} />
    </div>
  );
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div class="fact">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** A text that may come from a trace, in a line; a long name breaks behind its `_` and `/`, where nothing is searched for. */
export function Data({ children }: { children: string }) {
  const parts = useContext(Needle) ? [children] : children.split(/(?<=[_/])/);
  return <bdi>{parts.map((part, index) => <Fragment key={index}>{index > 0 && <wbr />}<Found>{part}</Found></Fragment>)}</bdi>;
}

// How text of a trace is shown: with what is searched for marked, and with the marks of Markdown. The elements are made here:
// nothing of a text becomes markup, or a link that is followed.
import { type ComponentChildren, createContext } from "preact";
import { useContext, useState } from "preact/hooks";
import { count, plain } from "./format";

const INLINE = /(`+)(.+?)\1|\*\*(\S.*?)\*\*/g;
const BLOCK = /^(?:(#{1,6})\s+(.*)|\s*(?:[-*+]|(\d+)[.)])\s+(.*)|>\s?(.*))$/;

/** The searched text; empty where nothing is. */
export const Needle = createContext("");

/** Text of a trace with each place marked that is searched for. */
export function Found({ children }: { children: string }) {
  const needle = useContext(Needle);
  const text = plain(children);
  if (!needle || !text) return <>{text}</>;
  const parts = text.split(new RegExp(`(${needle.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")})`, "gi"));
  return <>{parts.map((part, index) => (index % 2 ? <mark key={index}>{part}</mark> : part))}</>;
}

const FIGURE = /(\d) (?=(?:µs|ms|s|min|h|%|USD)\b)/g;

/** A sentence of clawtrace: what stands in backticks is code, and a figure stays with its unit. */
export function Said({ children }: { children: string }) {
  const words = (part: string) => plain(part).replace(FIGURE, "$1\u00a0");
  return <bdi dir="ltr">{children.split(/`([^`\n]+)`/).map((part, index) => (index % 2 ? <code key={index}>{plain(part)}</code> : words(part)))}</bdi>;
}

function inline(text: string): ComponentChildren[] {
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const found of text.matchAll(INLINE)) {
    parts.push(<Found>{text.slice(end, found.index)}</Found>);
    parts.push(found[2] !== undefined ? <code><Found>{found[2]}</Found></code> : <strong><Found>{found[3]!}</Found></strong>);
    end = found.index + found[0].length;
  }
  return [...parts, <Found>{text.slice(end)}</Found>];
}

/** A text of a conversation: headings, lists, quotes, code and bold words look as they were meant. */
function Markdown({ text }: { text: string }) {
  const blocks: ComponentChildren[] = [];
  text.split(/^```.*$/m).forEach((part, index) => {
    if (index % 2) return blocks.push(<pre tabIndex={0} aria-label="code"><Found>{part.replace(/^\n|\n$/g, "")}</Found></pre>);
    for (const paragraph of part.split(/\n{2,}/).filter((one) => one.trim())) {
      blocks.push(
        <p>
          {paragraph.split("\n").map((line, number) => {
            const [, heading, title, item, words, quote] = BLOCK.exec(line) ?? [];
            return (
              <>
                {number > 0 && "\n"}
                {heading ? <strong>{inline(title!)}</strong> : words !== undefined ? <>{item ? `${item}. ` : "• "}{inline(words)}</>
                  : quote !== undefined ? <>│ {inline(quote)}</> : inline(line)}
              </>
            );
          })}
        </p>,
      );
    }
  });
  return <div class="markdown">{blocks}</div>;
}

/** The same, folded where it is longer than `most` characters. */
export function LongMarkdown({ text, most }: { text: string; most: number }) {
  const [open, setOpen] = useState(false);
  const long = text.length > most;
  return (
    <>
      <Markdown text={long && !open ? `${text.slice(0, most)} …` : text} />
      {long && <button type="button" class="quiet" onClick={() => setOpen(!open)}>{open ? "show less" : `show all ${count(text.length)} characters`}</button>}
    </>
  );
}

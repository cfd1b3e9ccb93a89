// What is searched for, marked wherever the text of a trace stands.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { plain } from "./format";

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

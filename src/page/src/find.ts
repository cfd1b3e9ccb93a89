// Which spans are asked for: by text in names, arguments, results and messages, by kind, agent and how they ended.
import { useMemo } from "preact/hooks";
import type { RunDetails, Span } from "./data";

export interface Wanted {
  text: string;
  kind: string;
  agent: string;
  only: string;
}

export const ONLY: Record<string, string> = { failed: "failed", doubt: "in doubt", open: "never ended", path: "on the critical path" };
/** Microseconds by which what ended may have ended after what followed it. */
const ROUNDING = 1;

/** What the address asks for. */
export function wantedOf(query: URLSearchParams): Wanted {
  const [text = "", kind = "", agent = "", only = ""] = ["find", "kind", "agent", "only"].map((name) => query.get(name) ?? "");
  return { text, kind, agent, only };
}

/** Return for each span that is in doubt, why. */
export function doubtsOf(details: RunDetails): Map<string, string> {
  const spans = new Map<string, string | null>([
    ...details.tool_calls.map((call) => [`tool_calls ${call.call_no}`, call.span_id] as const),
    ...details.model_calls.map((call) => [`llm_calls ${call.call_no}`, call.span_id] as const),
    ...details.agents.map((one) => [`agents ${one.activation_no}`, one.span_id] as const),
  ]);
  const found = new Map<string, string>();
  for (const doubt of details.doubts) {
    if (doubt.column_name != null || doubt.row_no == null) continue;
    const span = spans.get(`${doubt.relation} ${doubt.row_no}`) ?? doubt.span_id;
    if (span) found.set(span, doubt.because);
  }
  for (const call of [...details.tool_calls, ...details.model_calls]) {
    if (!call.certain && call.span_id && !found.has(call.span_id)) found.set(call.span_id, "It is not certain that this is a call of its own.");
  }
  return found;
}

const endOf = (span: Span) => span.start_us! + (span.duration_us ?? 0);

/**
 * Return the spans on which the end of the outermost one hung: of the spans in each, from its end back, that which ended last before the
 * next of them began. Nothing waited for what else was at work.
 */
export function criticalPath({ spans }: RunDetails): Set<string> {
  const known = new Set(spans.map((span) => span.span_id));
  const inside = new Map<string, Span[]>();
  for (const span of spans.filter((one) => one.start_us != null)) {
    const parent = span.parent_span_id !== null && known.has(span.parent_span_id) ? span.parent_span_id : "";
    const of = inside.get(parent);
    if (of) of.push(span);
    else inside.set(parent, [span]);
  }
  const found = new Set<string>();
  const open: [string, number][] = [["", Infinity]];
  for (let next = open.pop(); next; next = open.pop()) {
    let [id, until] = next;
    for (const span of (inside.get(id) ?? []).sort((a, b) => endOf(b) - endOf(a))) {
      if (endOf(span) > until + ROUNDING || found.has(span.span_id)) continue;
      found.add(span.span_id);
      open.push([span.span_id, span.duration_us == null ? Infinity : endOf(span)]);
      until = span.start_us!;
    }
  }
  return found;
}

/** Return what is searched of each span, in small letters. */
function textsOf(details: RunDetails): Map<string, string> {
  const texts = new Map<string, string[]>();
  const add = (span: string | null, ...parts: (string | null)[]) => {
    if (!span) return;
    const known = texts.get(span) ?? [];
    texts.set(span, known);
    known.push(...parts.filter((part) => part !== null));
  };
  for (const span of details.spans) add(span.span_id, span.name, span.model, span.tool, span.agent, span.error, span.span_id);
  for (const call of details.tool_calls) add(call.span_id, call.name, call.arguments, call.result, call.error);
  for (const part of details.messages) add(part.span_id, part.name, part.text);
  return new Map([...texts].map(([id, parts]) => [id, parts.join("\n").toLowerCase()]));
}

/** Return the spans that have the text, in the order of the run. */
export function useHits(details: RunDetails | null | undefined, text: string): string[] {
  const texts = useMemo(() => (text && details ? textsOf(details) : null), [details, text !== ""]);
  return useMemo(() => {
    const small = text.toLowerCase();
    return texts ? details!.spans.filter((span) => texts.get(span.span_id)?.includes(small)).map((span) => span.span_id) : [];
  }, [texts, text]);
}

/** Return the spans that pass the filters; null where all do. `agentOf` names the agent at work in a span. */
export function useKept(
  details: RunDetails, wanted: Wanted, doubts: Map<string, string>, path: Set<string>, agentOf: (span: Span) => string,
): Set<string> | null {
  const { kind, agent, only } = wanted;
  return useMemo(() => {
    if (!kind && !agent && !only) return null;
    const fits: Record<string, (span: Span) => boolean> = {
      failed: (span) => span.error != null, doubt: (span) => doubts.has(span.span_id), open: (span) => !span.ended,
      path: (span) => path.has(span.span_id),
    };
    const found = details.spans.filter(
      (span) => (!kind || span.kind === kind) && (!agent || agentOf(span) === agent) && (fits[only]?.(span) ?? true),
    );
    return new Set(found.map((span) => span.span_id));
  }, [details, kind, agent, only]);
}

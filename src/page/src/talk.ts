// A run as a conversation: each message once, in the order in which it was said, with the agent that it belongs to.
import type { RunDetails, Span } from "./data";

type Part = RunDetails["messages"][number];
export type ToolCall = RunDetails["tool_calls"][number];

export interface Bubble {
  key: string;
  kind: "system" | "user" | "model" | "tool";
  /** Whether the model call was given it, and did not say it. */
  given: boolean;
  /** Of the model call that received or said it, or of the tool call. */
  span: Span | null;
  agent: string;
  /** How many agents stand above the one that it belongs to. */
  depth: number;
  parts: Part[];
  call: ToolCall | null;
  /** The names of tools that the model asked for, which follow as bubbles of their own. */
  asked: string[];
  turn: number | null;
}

const KINDS: Record<string, Bubble["kind"]> = { system: "system", developer: "system", assistant: "model", tool: "tool" };

/** What an agent's last model call had in its context: how often each message. */
interface Context {
  size: number;
  seen: Map<string, number>;
}

/** Return the messages of one span and direction, each with its parts. */
function messagesOf(parts: Part[]): Part[][] {
  const found = new Map<number, Part[]>();
  for (const part of parts) found.set(part.message_no, [...(found.get(part.message_no) ?? []), part]);
  return [...found.values()];
}

const keyOf = (message: Part[]) => message.map((part) => `${part.role === "assistant" ? "a" : "u"} ${part.type} ${part.call_id ?? ""} ${part.name ?? ""} ${part.text ?? ""}`).join("\n");
const isCall = (part: Part) => part.type === "tool_call" || part.type === "tool_call_response";

/** Return what was said in a run. */
export function bubblesOf(details: RunDetails): Bubble[] {
  const spans = new Map(details.spans.map((span) => [span.span_id, span]));
  const parts = new Map<string, Part[]>();
  for (const part of details.messages) {
    const known = parts.get(part.span_id) ?? [];
    parts.set(part.span_id, known);
    known.push(part);
  }
  const agents = new Map(details.agents.map((one) => [one.activation_no, one]));
  const bySpan = new Map(details.agents.flatMap((one) => (one.span_id ? [[one.span_id, one] as const] : [])));
  const depthOf = (id: string | null): number => {
    let depth = 0;
    const seen = new Set<number>();
    for (let one = id ? bySpan.get(id) : undefined; one?.parent_activation_no != null && !seen.has(one.activation_no); depth++) {
      seen.add(one.activation_no);
      one = agents.get(one.parent_activation_no);
    }
    return depth;
  };
  /** When each call that has an id began; a model's answer comes before the calls that it asks for, although it ends later. */
  const run = new Map(details.tool_calls.flatMap((call) => (call.call_id ? [[call.call_id, spans.get(call.span_id ?? "")?.start_us ?? Infinity] as const] : [])));
  const found: { at: number; rank: number; bubble: Bubble }[] = [];
  const add = (at: number | null | undefined, rank: number, bubble: Omit<Bubble, "key">) =>
    found.push({ at: at ?? Infinity, rank, bubble: { key: String(found.length), ...bubble } });

  const ofActivation = new Map<string, Context>();
  const ofAgent = new Map<string, Context>();
  const told = new Set<string>(); // ids of calls that a model was seen to ask for, and system texts by agent
  const calls = [...details.model_calls].sort((a, b) => (spans.get(a.span_id)?.start_us ?? Infinity) - (spans.get(b.span_id)?.start_us ?? Infinity));
  for (const call of calls) {
    const span = spans.get(call.span_id) ?? null;
    const agent = (call.agent_span_id && bySpan.get(call.agent_span_id)?.name) || "";
    const own = { span, agent, depth: depthOf(call.agent_span_id), call: null, asked: [], turn: span?.turn ?? null };
    const all = parts.get(call.span_id) ?? [];
    const input = messagesOf(all.filter((part) => part.direction === "input"));
    const output = all.filter((part) => part.direction === "output");
    const before = ofActivation.get(call.agent_span_id ?? "") ?? ofAgent.get(agent);
    const goesOn = before && (ofActivation.has(call.agent_span_id ?? "") || input.length >= before.size);
    const now: Context = { size: input.length, seen: new Map() };
    for (const message of input) {
      const key = keyOf(message);
      const times = (now.seen.get(key) ?? 0) + 1;
      now.seen.set(key, times);
      if (goesOn && times <= (before.seen.get(key) ?? 0)) continue;
      const role = message[0]?.role;
      const shown = message.filter((part) => !isCall(part) || !(part.call_id && (run.has(part.call_id) || told.has(part.call_id))));
      if (!shown.length || (role === "system" && told.has(`${agent}\n${key}`))) continue;
      if (role === "system") told.add(`${agent}\n${key}`);
      const kind = shown.every((part) => part.type === "tool_call_response") ? "tool" : (KINDS[role ?? ""] ?? "user");
      add(span?.start_us, 0, { ...own, given: true, kind, parts: shown });
    }
    const said = keyOf(output);
    now.seen.set(said, (now.seen.get(said) ?? 0) + 1);
    ofActivation.set(call.agent_span_id ?? "", now);
    ofAgent.set(agent, now);
    for (const part of output) if (part.type === "tool_call" && part.call_id) told.add(part.call_id);
    const asked = output.filter((part) => part.type === "tool_call" && part.call_id && run.has(part.call_id));
    const ended = span && span.start_us != null ? span.start_us + (span.duration_us ?? 0) : Infinity;
    add(Math.min(ended, ...asked.map((part) => run.get(part.call_id!)!)), 1, {
      ...own, given: false, kind: "model", parts: output.filter((part) => !asked.includes(part)), asked: asked.map((part) => part.name ?? "?"),
    });
  }
  for (const call of details.tool_calls) {
    const span = spans.get(call.span_id ?? "") ?? null;
    const agent = (call.agent_span_id && bySpan.get(call.agent_span_id)?.name) || "";
    add(span?.start_us, 2, { kind: "tool", given: false, span, agent, depth: depthOf(call.agent_span_id), parts: [], call, asked: [], turn: span?.turn ?? null });
  }
  return found.sort((a, b) => a.at - b.at || a.rank - b.rank).map((one) => one.bubble);
}

// One span in the waterfall: its name, its tokens and cost, and when it was at work.
import type { Span } from "./data";
import { count, dollars, duration } from "./format";
import { Found } from "./rich";
import type { View } from "./timeline";

export const ROW = 26;
export const LANES = 8;

export const KIND: Record<string, string> = {
  llm: "model", tool: "tool", agent: "agent", chain: "chain", retrieval: "retrieval", embedding: "embedding",
  guardrail: "guardrail", evaluator: "evaluator", infra: "infra", other: "other",
};

/** What OpenTelemetry's names of spans begin with; a telephone leaves it to the kind. */
const OPERATION = /^(execute_tool|invoke_agent|chat) (?=\S)/;

interface Shown {
  span: Span;
  index: number;
  size: number;
  lane: number | undefined;
  view: View;
  /** Whether the agent's end hung on it, where it did not hang on every span. */
  critical: boolean;
  marked: boolean;
  hit: boolean;
  chosen: boolean;
  /** Why the call is not certain. */
  doubt: string | undefined;
  /** Whether its spans are shown; null where it has none. */
  open: boolean | null;
  toggle: (span: Span) => void;
}

export function lasted(span: Span): string {
  return span.ended ? duration(span.duration_us == null ? null : span.duration_us / 1000) : "never ended";
}

export function Row({ span, index, size, lane, view, critical, marked, hit, chosen, doubt, open, toggle }: Shown) {
  const tokens = span.input_tokens != null || span.output_tokens != null ? `${count(span.input_tokens)}→${count(span.output_tokens)}` : "";
  const operation = OPERATION.exec(span.name)?.[0] ?? "";
  const own = span.kind === "llm" ? span.model : span.kind === "tool" ? span.tool : null;
  const more = own && !span.name.includes(own) ? own : null;
  const classes = [
    "row", marked && "marked", hit && "hit", chosen && "chosen", doubt && "doubt", span.error != null && "failed", span.counted_as !== "call" && "aside",
  ];
  return (
    <div
      id={`span-${index}`} role="treeitem" aria-level={span.depth + 1} aria-setsize={size} aria-posinset={index + 1}
      aria-selected={chosen} aria-expanded={open ?? undefined} aria-description={doubt && `In doubt: ${doubt}`}
      class={classes.filter(Boolean).join(" ")} style={{ top: `${index * ROW}px`, height: `${ROW}px` }} data-row={index}
    >
      <span class="name" style={{ paddingLeft: `${Math.min(span.depth, 24) * 12}px` }}>
        <span
          class="fold" aria-hidden="true"
          onClick={(event) => {
            event.stopPropagation();
            if (open !== null) toggle(span);
          }}
        >
          {open === null ? "" : open ? "▾" : "▸"}
        </span>
        <span class={`kind ${span.kind}`}>{KIND[span.kind] ?? span.kind}</span>
        <bdi>{operation && <span class="operation"><Found>{operation}</Found></span>}<Found>{span.name.slice(operation.length)}</Found></bdi>
        {more && <span class="dim more"> <Found>{more}</Found></span>}
        {span.error != null && <span class="fail"> ✗</span>}
      </span>
      <span class="numbers">{tokens}{span.cost_usd != null && ` ${dollars(span.cost_usd)}`}</span>
      <Track span={span} lane={lane} view={view} critical={critical} />
    </div>
  );
}

function Track({ span, lane, view, critical }: Pick<Shown, "span" | "lane" | "view" | "critical">) {
  if (span.start_us == null) return <span class="track"><span class="time">{lasted(span)}</span></span>;
  const part = (at: number) => ((at - view.from) / (view.to - view.from)) * 100;
  const [start, end] = [part(span.start_us), part(span.start_us + (span.duration_us ?? 0))];
  if (end < 0) return <span class="track"><span class="time" aria-hidden="true">‹</span></span>;
  if (start > 100) return <span class="track"><span class="time" style={{ right: "0" }} aria-hidden="true">›</span></span>;
  const [left, right] = [Math.max(0, Math.min(start, 99.8)), Math.min(100, end)];
  const width = Math.max(0.15, right - left);
  const room = innerWidth < 600 ? 62 : 80; // where a time still has place behind its bar
  const label = left + width < room ? { left: `calc(${left + width}% + 4px)` } : left > 20 ? { right: `calc(${100 - left}% + 4px)` } : { left: "4px" };
  const inside = left + width >= room && left <= 20;
  return (
    <span class="track">
      <span
        class={`duration ${lane === undefined ? "none" : `c${lane % LANES}`} ${span.ended ? "" : "open"} ${critical ? "critical" : ""}`}
        style={{ left: `${left}%`, width: `${width}%` }}
      />
      <span class={inside ? "time inside" : "time"} style={label}>{lasted(span)}</span>
    </span>
  );
}

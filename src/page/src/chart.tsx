// Pass rate over cost, a bubble for each case and model; its size is the time that a run took.
import { scaleLinear, scaleSqrt } from "d3-scale";
import type { Results } from "./data";
import { costOf, dollars, duration, median, percent } from "./format";
import { runLink } from "./router";

const WIDTH = 760;
const HEIGHT = 300;
const EDGE = { left: 52, right: 20, top: 24, bottom: 40 };
const COLOURS = 8;

export function Bubbles({ results }: { results: Results }) {
  const points = results.cases.flatMap((one) => {
    const cost = median(one.runs.map((run) => costOf(run).value));
    const score = median(one.runs.map((run) => run.final_score));
    const rate = score != null ? score / 10 : one.pass_rate;
    if (cost == null || rate == null) return [];
    return [{ one, cost, rate, time: median(one.runs.map((run) => run.trace.duration_ms)) ?? 0 }];
  });
  if (points.length < 2 || points.every((point) => point.cost === 0)) return null;
  const models = [...new Set(points.map((point) => point.one.model_id))];
  const x = scaleLinear([0, Math.max(...points.map((point) => point.cost))], [EDGE.left, WIDTH - EDGE.right]).nice();
  const y = scaleLinear([0, 1], [HEIGHT - EDGE.bottom, EDGE.top]);
  const size = scaleSqrt([0, Math.max(...points.map((point) => point.time), 1)], [4, 18]);
  return (
    <section aria-label="Pass rate over cost">
      <h2>Pass rate over cost</h2>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-label="Pass rate over cost; the table above has the numbers" role="group" class="chart">
        {x.ticks(6).map((tick) => (
          <g key={tick}>
            <line x1={x(tick)} x2={x(tick)} y1={EDGE.top} y2={HEIGHT - EDGE.bottom} class="grid" />
            <text x={x(tick)} y={HEIGHT - 22} text-anchor="middle">{dollars(tick)}</text>
          </g>
        ))}
        {[0, 0.5, 1].map((tick) => (
          <g key={tick}>
            <line x1={EDGE.left} x2={WIDTH - EDGE.right} y1={y(tick)} y2={y(tick)} class="grid" />
            <text x={EDGE.left - 8} y={y(tick) + 4} text-anchor="end">{percent(tick)}</text>
          </g>
        ))}
        <text x={WIDTH - EDGE.right} y={HEIGHT - 5} text-anchor="end">cost of a run (median); size: its duration</text>
        {points.map(({ one, cost, rate, time }) => (
          <a key={`${one.case_id} ${one.model_id}`} href={runLink(one.runs[0]!.run_id)}>
            <circle cx={x(cost)} cy={y(rate)} r={size(time)} class={`bubble c${models.indexOf(one.model_id) % COLOURS}`}>
              <title>
                {one.case_id} {one.model_id ?? ""}: {percent(rate)}, {dollars(cost)}, {duration(time)}
              </title>
            </circle>
          </a>
        ))}
      </svg>
      {models.length > 1 && (
        <p class="legend">
          {models.map((model, index) => <span key={model}><i class={`c${index % COLOURS}`} /> {model ?? "no model"}</span>)}
        </p>
      )}
    </section>
  );
}

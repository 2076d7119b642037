import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

export interface ChartData { times: number[]; series: { label: string; color: string; values: (number | null)[] }[]; bars: boolean; format: (value: number) => string }

/** Resolves a design token in the current theme. */
const cssColor = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Keeps points off the edges and avoids stretching a short range over the whole chart. */
const xPadding = (first: number, last: number, bars: boolean) => (bars ? 43_200 : Math.max((last - first) * 0.03, last - first < 120 ? 60 : 0));
const DAY = { day: "numeric", month: "short" } as const;
const TIME = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
/** As much of a time as distinguishes one tick from the next. */
function tickLabel(time: number, isDay: boolean, step: number): string {
  const shown = isDay || step >= 86_400 ? DAY : step < 60 ? { ...TIME, second: "2-digit" } as const : TIME;
  return new Date(time * 1000).toLocaleString(document.documentElement.lang, shown);
}

export function drawChart(node: HTMLElement, width: number, { times, series, bars, format }: ChartData): uPlot {
  const axis: uPlot.Axis = { stroke: cssColor("--foreground-muted"), grid: { stroke: cssColor("--border"), width: 1 }, ticks: { stroke: cssColor("--border") }, font: "12px system-ui" };
  // Turns are independent events, so they are drawn as points without a line.
  const paths = bars ? uPlot.paths.bars?.({ size: [0.6, 48], radius: 0.15 }) : () => null;
  return new uPlot({
    width, height: 220, legend: { show: false }, cursor: { y: false },
    axes: [{ ...axis, space: 90, values: (_, ticks) => ticks.map((time) => tickLabel(time, bars, ticks[1] - ticks[0])) }, { ...axis, size: 64, values: (_, ticks) => ticks.map(format) }],
    scales: { x: { range: (_, first, last) => [first - xPadding(first, last, bars), last + xPadding(first, last, bars)] }, y: { range: (_, __, most) => [0, bars ? Math.max(most * 1.1, 1) : most * 1.1 || 1] } },
    series: [{}, ...series.map((one): uPlot.Series => ({
      label: one.label, stroke: cssColor(one.color), width: 2, spanGaps: false, paths,
      fill: bars ? cssColor(one.color) : undefined, points: { show: !bars, size: 5, fill: cssColor(one.color) },
    }))],
  }, [times, ...series.map((one) => one.values)], node);
}

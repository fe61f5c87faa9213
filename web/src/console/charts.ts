import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { get, h, setText } from "../theme/dom.js";
import * as format from "./format.js";
import type { Sample } from "./stats.js";

interface Line {
  name: string;
  /** A colour of the theme. */
  colour: string;
  value(s: Sample): number | undefined;
}

interface Plan {
  title: string;
  lines: Line[];
  write(n: number | undefined): string;
}

const kept = 300; // samples, one a second
const ink = { a: "--line-a", b: "--line-b", c: "--line-c" };

const plans: Plan[] = [
  { title: "Taps a second", write: format.short, lines: [{ name: "acknowledged", colour: ink.a, value: (s) => s.rate("commands_total") }, { name: "refused", colour: ink.c, value: (s) => s.rate("refused_total") }] },
  { title: "Time to acknowledge", write: format.duration, lines: [{ name: "p99", colour: ink.a, value: (s) => s.stats.write_p99_ms }, { name: "median", colour: ink.b, value: (s) => s.stats.write_p50_ms }] },
  { title: "Age of the queue", write: format.duration, lines: [{ name: "oldest", colour: ink.a, value: (s) => s.stats.queue_age_ms }] },
  { title: "Lag of the counts", write: format.duration, lines: [{ name: "lag", colour: ink.a, value: (s) => s.stats.lag_ms }] },
  { title: "Counts answered a second", write: format.short, lines: [{ name: "memory", colour: ink.b, value: (s) => s.rate("l1_hits_total") }, { name: "ledger", colour: ink.a, value: (s) => s.rate("ledger_hits_total") }, { name: "old value", colour: ink.c, value: (s) => s.rate("stale_total") }] },
  { title: "Live clients", write: format.short, lines: [{ name: "event streams", colour: ink.a, value: (s) => s.stats.live_clients.sse }, { name: "WebSockets", colour: ink.b, value: (s) => s.stats.live_clients.ws }] },
];

/** One chart: a title, the values under the pointer or the newest, and the lines. */
class Chart {
  readonly #plan: Plan;
  readonly #values: HTMLElement[];
  readonly #box: HTMLElement;
  readonly #figure: HTMLElement;
  readonly #data: (number | null)[][];
  #plot: uPlot | undefined;

  constructor(plan: Plan, times: (number | null)[]) {
    this.#plan = plan;
    this.#data = [times, ...plan.lines.map(() => [])];
    this.#values = plan.lines.map(() => h("b", { class: "tabular" }, format.unknown));
    this.#box = h("div", { class: "plot", "aria-hidden": "true" });
    const key = plan.lines.map((line, i) => {
      const mark = h("i", {});
      mark.style.background = `var(${line.colour})`;
      return h("span", {}, mark, `${line.name} `, this.#values[i]!);
    });
    this.#figure = h("figure", { class: "chart" }, h("figcaption", {}, h("h3", {}, plan.title), h("p", { class: "key" }, ...key)), this.#box);
    get("charts").append(this.#figure);
    new ResizeObserver(() => this.#plot?.setSize(this.#size())).observe(this.#box);
  }

  add(s: Sample | undefined): void {
    this.#plan.lines.forEach((line, i) => {
      const values = this.#data[i + 1]!;
      values.push((s && line.value(s)) ?? null);
      if (values.length > kept) values.shift();
    });
    if (!this.#plot) this.draw();
    else this.#plot.setData(this.#data as uPlot.AlignedData);
    this.#write(null);
  }

  /** Draws from scratch: colours are read once by the plot. */
  draw(): void {
    this.#plot?.destroy();
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => resolve(style.getPropertyValue(name));
    const axis = { stroke: colour("--soft"), font: "11px Inter, system-ui, sans-serif", ticks: { show: false }, border: { show: false } };
    this.#plot = new uPlot(
      {
        ...this.#size(),
        legend: { show: false },
        padding: [8, 8, 0, 0],
        cursor: { sync: { key: "console" }, y: false, points: { size: 7 }, drag: { setScale: false } },
        scales: { x: { time: true }, y: { range: (_, __, max) => [0, Math.max(max * 1.15, 1)] } },
        axes: [
          { ...axis, grid: { show: false }, space: 90, size: 26, values: (_, ticks) => ticks.map((t) => new Date(t * 1000).toLocaleTimeString("en-GB")) },
          { ...axis, grid: { stroke: colour("--line"), width: 1 }, space: 34, size: 58, values: (_, ticks) => ticks.map((n) => this.#plan.write(n)) },
        ],
        series: [
          {},
          ...this.#plan.lines.map(
            (line, i): uPlot.Series => ({
              stroke: colour(line.colour),
              width: 2,
              points: { show: false },
              ...(i === 0 ? { fill: `color-mix(in srgb, ${colour(line.colour)} 14%, transparent)` } : {}),
            }),
          ),
        ],
        hooks: { setCursor: [(plot) => this.#write(plot.cursor.idx ?? null)] },
      },
      this.#data as uPlot.AlignedData,
      this.#box,
    );
  }

  #size(): { width: number; height: number } {
    return { width: Math.max(120, this.#box.clientWidth), height: 150 };
  }

  #write(at: number | null): void {
    const texts = this.#plan.lines.map((line, i) => {
      const values = this.#data[i + 1]!;
      const text = this.#plan.write(values[at ?? values.length - 1] ?? undefined);
      setText(this.#values[i]!, text);
      return `${line.name} ${text}`;
    });
    if (at === null) this.#figure.setAttribute("aria-label", `${this.#plan.title}: ${texts.join(", ")}`);
  }
}

/** Canvas does not know light-dark(); the browser says what it comes to. */
function resolve(value: string): string {
  const probe = h("span");
  probe.style.color = value;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** All charts, with the samples of the last five minutes. */
export class Charts {
  readonly #times: number[] = [];
  readonly #charts: Chart[];

  constructor() {
    this.#charts = plans.map((plan) => new Chart(plan, this.#times));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      for (const chart of this.#charts) chart.draw();
    });
  }

  /** Adds a sample; a look that failed leaves a gap. */
  add(s: Sample | undefined): void {
    this.#times.push(Date.now() / 1000);
    if (this.#times.length > kept) this.#times.shift();
    for (const chart of this.#charts) chart.add(s);
  }
}

import { get, h, setText } from "../theme/dom.js";
import * as format from "./format.js";
import type { Sample } from "./stats.js";

type Health = "ok" | "warn" | "bad";

/** One part of the system, as the picture shows it. */
interface Part {
  id: string;
  name: string;
  unit: string;
  icon: string;
  /** What it does, for someone who sees it for the first time. */
  text: string;
  figure(s: Sample): string;
  /** Its figures: name, value, and what the name means. */
  figures(s: Sample): [string, string, string][];
  health(s: Sample): Health;
}

const parts: Part[] = [
  {
    id: "clients",
    name: "Clients",
    unit: "watching live",
    icon: "M4 5h16v11H4zM9 20h6M12 16v4",
    text: "Buttons on pages, apps and trusted backends. A tap is sent as a wish, “I like this” or “not any more”, so sending it twice changes nothing. The button shows it before the server answers.",
    figure: ({ stats }) => format.short(stats.live_clients.sse + stats.live_clients.ws),
    figures: (s) => [
      ["Event streams", format.count(s.stats.live_clients.sse), "Pages that follow counts over server-sent events"],
      ["WebSockets", format.count(s.stats.live_clients.ws), "Clients that follow counts over a WebSocket"],
      ["Taps", perSecond(s.rate("commands_total")), "Likes and unlikes that arrive, repeats included"],
    ],
    health: () => "ok",
  },
  {
    id: "api",
    name: "API",
    unit: "taps a second",
    icon: "M8 7l-5 5 5 5M16 7l5 5-5 5M13.5 5l-3 14",
    text: "Checks the token, the limits and the form of every request, and answers in the same second. What is refused changes nothing and says why.",
    figure: (s) => format.short(s.rate("commands_total")),
    figures: (s) => [
      ["Taps", perSecond(s.rate("commands_total")), "Likes and unlikes acknowledged"],
      ["Refused", perSecond(s.rate("refused_total")), "Requests answered by 4xx: no token, too fast, not valid"],
      ["Answer, median", format.duration(s.stats.write_p50_ms), "Half of the taps are acknowledged faster"],
      ["Answer, p99", format.duration(s.stats.write_p99_ms), "99 of 100 taps are acknowledged faster"],
    ],
    health: ({ stats }) => (stats.ready.some((check) => !check.ok) ? "bad" : stats.write_p99_ms > 50 ? "warn" : "ok"),
  },
  {
    id: "ledger",
    name: "Ledger",
    unit: "likes kept",
    icon: "M6 4h12v16H6zM9 8h6M9 12h6M9 16h3",
    text: "The truth: who likes what, and since when. A tap is acknowledged once it is safe on disk. The fact and the total are written in one commit, so they cannot drift apart.",
    figure: ({ stats }) => format.short(stats.likes_total),
    figures: (s) => {
      const commits = s.rate("commits_total");
      return [
        ["Likes", format.count(s.stats.likes_total), "Facts in the store"],
        ["Commits", perSecond(commits), "Synced writes to disk"],
        ["Taps a commit", commits ? ((s.rate("commands_total") ?? 0) / commits).toFixed(1) : format.unknown, "How many share one sync"],
        ["Queue", `${format.count(s.stats.queue_length)} · ${format.duration(s.stats.queue_age_ms)}`, "Taps that wait for a commit, and the age of the oldest"],
        ["Disk free", format.bytes(s.stats.disk_free_bytes), "Writes are refused before it is full"],
      ];
    },
    health: ({ stats }) => (stats.queue_age_ms > 1000 ? "bad" : stats.queue_age_ms > 200 ? "warn" : "ok"),
  },
  {
    id: "counts",
    name: "Counts",
    unit: "counts a second",
    icon: "M5 19V11M12 19V5M19 19v-6",
    text: "Answers a whole feed page in one call. Totals come from memory, where the ledger pushes every change; only what is not there is read from the ledger.",
    figure: (s) => format.short(reads(s)),
    figures: (s) => [
      ["From memory", perSecond(s.rate("l1_hits_total")), "Answered by the cache in this process"],
      ["From the ledger", perSecond(s.rate("ledger_hits_total")), "Not in memory, so read from the store"],
      ["Hit rate", format.percent(s.rate("l1_hits_total"), reads(s)), "Share answered from memory"],
      ["Old values", perSecond(s.rate("stale_total")), "Answered with the last known value because the store could not be read"],
      ["Lag", format.duration(s.stats.lag_ms), "Age of the oldest change that is not in the counts yet"],
    ],
    health: (s) => (s.stats.lag_ms > 5000 ? "bad" : s.stats.lag_ms > 3000 || (s.rate("stale_total") ?? 0) > 0 ? "warn" : "ok"),
  },
  {
    id: "live",
    name: "Live",
    unit: "frames a second",
    icon: "M4 12a8 8 0 0 1 8-8M20 12a8 8 0 0 1-8 8M8 12a4 4 0 0 1 4-4M16 12a4 4 0 0 1-4 4M12 12v.01",
    text: "Pushes new totals to everybody who watches. Always the newest total, never a difference: a lost or repeated frame cannot make a number wrong. Who reads too slowly skips values and delays nobody.",
    figure: (s) => format.short(s.rate("live_frames_total")),
    figures: (s) => [
      ["Frames", perSecond(s.rate("live_frames_total")), "Messages sent to live clients"],
      ["Dropped", perSecond(s.rate("live_dropped_total")), "Given up because a client was too slow"],
      ["Event streams", format.count(s.stats.live_clients.sse), "Open server-sent event streams"],
      ["WebSockets", format.count(s.stats.live_clients.ws), "Open WebSockets"],
    ],
    health: (s) => ((s.rate("live_dropped_total") ?? 0) > 0 ? "warn" : "ok"),
  },
];

function perSecond(rate: number | undefined): string {
  return rate === undefined ? format.unknown : `${format.short(rate)}/s`;
}

function reads(s: Sample): number | undefined {
  const memory = s.rate("l1_hits_total");
  return memory === undefined ? undefined : memory + (s.rate("ledger_hits_total") ?? 0) + (s.rate("stale_total") ?? 0);
}

const healthText: Record<Health, string> = { ok: "fine", warn: "needs an eye", bad: "in trouble" };

/** The picture of the system: a row of parts, each a tab whose panel explains it. */
export class Pipeline {
  readonly #tabs = new Map<string, HTMLElement>();
  #selected = parts[2]!;
  #last: Sample | undefined;

  constructor() {
    const row = get("parts");
    for (const part of parts) {
      const tab = h(
        "button",
        {
          type: "button",
          class: "part",
          role: "tab",
          id: `part-${part.id}`,
          "aria-controls": "part-panel",
          click: () => this.#select(part),
          keydown: (event: KeyboardEvent) => this.#move(part, event),
        },
        icon(part.icon),
        h("span", { class: "part-name" }, part.name, h("span", { class: "only-read health" })),
        h("span", { class: "part-figure tabular" }, format.unknown),
        h("span", { class: "part-unit" }, part.unit),
      );
      this.#tabs.set(part.id, tab);
      row.append(tab);
    }
    this.#select(this.#selected);
  }

  /** Shows the newest figures. */
  show(s: Sample): void {
    this.#last = s;
    for (const part of parts) {
      const tab = this.#tabs.get(part.id)!;
      const health = part.health(s);
      tab.dataset.health = health;
      setText(tab.querySelector(".health")!, `, ${healthText[health]}`);
      setText(tab.querySelector(".part-figure")!, part.figure(s));
    }
    // The busier, the faster the dots run: from one crossing in 4 s to one in 0.6 s.
    const taps = s.rate("commands_total") ?? 0;
    const row = get("picture");
    row.classList.toggle("idle", taps === 0);
    const bucket = taps > 1000 ? "fast" : taps > 50 ? "brisk" : "calm";
    if (row.dataset.pace !== bucket) row.dataset.pace = bucket;
    this.#describe();
  }

  #select(part: Part): void {
    this.#selected = part;
    for (const [id, tab] of this.#tabs) {
      tab.setAttribute("aria-selected", String(id === part.id));
      tab.tabIndex = id === part.id ? 0 : -1;
    }
    const panel = get("part-panel");
    panel.setAttribute("aria-labelledby", `part-${part.id}`);
    panel.replaceChildren(h("div", { class: "part-text" }, h("h3", {}, part.name), h("p", {}, part.text)), h("dl", { class: "figures" }));
    this.#describe();
  }

  /** The arrow keys, Home and End move along the row. */
  #move(part: Part, event: KeyboardEvent): void {
    const at = parts.indexOf(part);
    const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: parts.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = parts.at(to % parts.length)!;
    this.#select(next);
    this.#tabs.get(next.id)!.focus();
  }

  #describe(): void {
    const list = get("part-panel").querySelector("dl");
    if (!list || !this.#last) return;
    const figures = this.#selected.figures(this.#last);
    if (list.childElementCount !== figures.length) {
      list.replaceChildren(...figures.map(([name, , meaning]) => h("div", {}, h("dt", {}, name), h("dd", { class: "tabular" }), h("dd", { class: "meaning" }, meaning))));
    }
    figures.forEach(([, value], i) => setText(list.children[i]!.querySelector(".tabular")!, value));
  }
}

function icon(path: string): SVGElement {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(ns, "path");
  line.setAttribute("d", path);
  svg.append(line);
  return svg;
}

import { get, h, setText } from "../theme/dom.js";
import * as api from "./api.js";
import * as format from "./format.js";
import type { HotItem, Sample } from "./stats.js";

/** A recount and what it found; a difference can be corrected from here. */
export function recount(collection: string, id: string): HTMLElement {
  const result = h("span", { class: "result", role: "status" });
  const button = h("button", { type: "button", class: "button small" }, "Recount");
  button.setAttribute("aria-label", `Recount ${collection}/${id}`);
  const run = async (repair: boolean) => {
    button.disabled = true;
    result.className = "result";
    setText(result, "Counting…");
    try {
      const found = await api.audit(collection, id, repair);
      if (!found.drift) {
        result.classList.add("good");
        setText(result, `Exact: ${format.count(found.facts)}`);
      } else if (found.repaired) {
        result.classList.add("good");
        setText(result, `Corrected to ${format.count(found.facts)}`);
      } else {
        result.classList.add("bad");
        result.replaceChildren(
          `${format.count(found.facts)} facts, but the total is ${format.count(found.total)} `,
          h("button", { type: "button", class: "link", click: () => void run(true) }, "Correct it"),
        );
      }
    } catch (error) {
      result.classList.add("bad");
      setText(result, (error as Error).message);
    }
    button.disabled = false;
  };
  button.addEventListener("click", () => void run(false));
  return h("span", { class: "recount" }, button, result);
}

/** The table of hot items. Rows stay in place while their item does, so that a click hits what it aimed at. */
export class HotItems {
  readonly #rows = new Map<string, HTMLTableRowElement>();

  constructor(look: (item: HotItem) => void) {
    this.#look = look;
  }

  readonly #look: (item: HotItem) => void;

  show({ stats }: Sample): void {
    const body = get("hot");
    if (body.matches(":hover, :focus-within")) {
      for (const item of stats.hot) this.#fill(item, stats.hot[0]!.likes_per_s);
      return; // the order may wait
    }
    const wanted = stats.hot.map((item) => this.#fill(item, stats.hot[0]!.likes_per_s));
    const keys = new Set(stats.hot.map(keyOf));
    for (const key of this.#rows.keys()) if (!keys.has(key)) this.#rows.delete(key);
    body.replaceChildren(...wanted);
    get("hot-table").hidden = wanted.length === 0;
    get("hot-empty").hidden = wanted.length > 0;
  }

  #fill(item: HotItem, most: number): HTMLTableRowElement {
    let row = this.#rows.get(keyOf(item));
    if (!row) {
      row = h(
        "tr",
        {},
        h("th", { scope: "row" }, h("button", { type: "button", class: "link", click: () => this.#look(item) }, keyOf(item))),
        h("td", { class: "speed" }, h("meter", { min: 0, "aria-hidden": "true" }), h("span", { class: "tabular" })),
        h("td", { class: "tabular number" }),
        h("td", {}, recount(item.collection, item.id)),
      );
      this.#rows.set(keyOf(item), row);
    }
    const meter = row.querySelector("meter")!;
    meter.max = most || 1;
    meter.value = item.likes_per_s;
    setText(row.querySelector(".speed span")!, `${format.short(item.likes_per_s)}/s`);
    setText(row.querySelector(".number")!, format.count(item.count));
    return row;
  }
}

function keyOf(item: { collection: string; id: string }): string {
  return `${item.collection}/${item.id}`;
}

/** The last audits, and all drift since the start. */
export function showAudits({ stats }: Sample, now: number): void {
  const { audits, drift_found_total: found, drift_corrected_total: corrected } = stats;
  const verdict = get("verdict");
  verdict.className = found === 0 ? "verdict good" : "verdict bad";
  setText(verdict, found === 0 ? "No drift since the start" : `${format.count(found)} drifted, ${format.count(corrected)} corrected. That is a bug: please report it.`);
  get("audit-empty").hidden = audits.length > 0;
  get("audits").replaceChildren(
    ...audits.map((audit) =>
      h(
        "li",
        {},
        h("span", { class: audit.drifted > 0 ? "dot bad" : "dot good" }),
        h("span", {}, `${format.count(audit.items)} items, ${audit.drifted === 0 ? "all exact" : `${format.count(audit.drifted)} drifted, ${format.count(audit.repaired)} corrected`}`),
        h("span", { class: "when" }, `${format.ago(audit.time, now)} · ${format.duration(audit.duration_ms)}`),
      ),
    ),
  );
}

import { get, h } from "../theme/dom.js";
import * as api from "./api.js";
import * as format from "./format.js";
import { recount } from "./tables.js";

const perList = 20;

/** Runs a look-up and shows its result, its progress or its failure in a place. */
async function show(place: HTMLElement, find: () => Promise<Node[]>): Promise<void> {
  place.setAttribute("aria-busy", "true");
  place.replaceChildren(h("p", { class: "hint" }, "Looking…"));
  try {
    place.replaceChildren(...(await find()));
  } catch (error) {
    place.replaceChildren(h("p", { class: "hint bad" }, (error as Error).message));
  }
  place.removeAttribute("aria-busy");
}

function list(rows: [HTMLElement, string][], empty: string): HTMLElement {
  if (rows.length === 0) return h("p", { class: "hint" }, empty);
  const now = Date.now();
  return h(
    "div",
    {},
    h("ol", { class: "rows" }, ...rows.map(([name, time]) => h("li", {}, name, h("time", { datetime: time, title: time, class: "when" }, format.ago(time, now))))),
    rows.length === perList && h("p", { class: "hint" }, `The newest ${perList}.`),
  );
}

function link(text: string, click: () => void): HTMLElement {
  return h("button", { type: "button", class: "link", click }, text);
}

/** Looks an item up, from the form or from elsewhere on the page. */
export function lookUpItem(collection: string, id: string): Promise<void> {
  get<HTMLInputElement>("item-collection").value = collection;
  get<HTMLInputElement>("item-id").value = id;
  return show(get("item-result"), async () => {
    const found = await api.item(collection, id);
    return [
      h(
        "div",
        { class: "found" },
        h("div", {}, h("b", { class: "big tabular" }, format.count(found.total)), h("span", { class: "hint" }, ` likes, version ${found.version}`)),
        recount(collection, id),
      ),
      list(
        found.likers.map(({ user, liked_at }) => [link(user, () => void lookUpUser(user)), liked_at]),
        "Nobody likes it yet.",
      ),
    ];
  });
}

/** Looks a user up. */
export function lookUpUser(name: string): Promise<void> {
  get<HTMLInputElement>("user-name").value = name;
  return show(get("user-result"), async () => {
    const { likes } = await api.user(name);
    return [
      h(
        "div",
        { class: "found" },
        h("b", {}, name),
        likes.length > 0 && h("button", { type: "button", class: "button small danger", click: () => confirmErase(name) }, "Erase…"),
      ),
      list(
        likes.map(({ collection, id, liked_at }) => [link(`${collection}/${id}`, () => void lookUpItem(collection, id)), liked_at]),
        "This user likes nothing.",
      ),
    ];
  });
}

/** Erasing cannot be undone, so the name has to be written once more. */
function confirmErase(name: string): void {
  const dialog = get<HTMLDialogElement>("erase");
  const input = get<HTMLInputElement>("erase-name");
  const button = get<HTMLButtonElement>("erase-go");
  get("erase-who").textContent = name;
  input.value = "";
  button.disabled = true;
  input.oninput = () => (button.disabled = input.value !== name);
  dialog.onclose = () => {
    if (dialog.returnValue !== "erase" || input.value !== name) return;
    void show(get("user-result"), async () => {
      const { removed } = await api.erase(name);
      return [h("p", { class: "hint good" }, `Removed ${format.count(removed)} likes of ${name}.`)];
    });
  };
  dialog.returnValue = "";
  dialog.showModal();
}

/** Wires the two forms. */
export function listen(): void {
  get("item-form").addEventListener("submit", (event) => {
    event.preventDefault();
    void lookUpItem(get<HTMLInputElement>("item-collection").value.trim(), get<HTMLInputElement>("item-id").value);
  });
  get("user-form").addEventListener("submit", (event) => {
    event.preventDefault();
    void lookUpUser(get<HTMLInputElement>("user-name").value);
  });
}

import { get, h, setText } from "../theme/dom.js";
import * as api from "./api.js";
import { Charts } from "./charts.js";
import * as format from "./format.js";
import { listen, lookUpItem } from "./lookup.js";
import { Pipeline } from "./pipeline.js";
import { sample, type Sample, type Stats } from "./stats.js";
import { HotItems, showAudits } from "./tables.js";

const pollEvery = 1000;

/** What the page shows: the form for the token, the first look, the figures, or old figures with a warning. */
type Mode = "signed-out" | "loading" | "live" | "lost";

const pipeline = new Pipeline();
const charts = new Charts();
const hot = new HotItems((item) => {
  void lookUpItem(item.collection, item.id);
  get("lookups").scrollIntoView({ behavior: "smooth" });
});
let before: Stats | undefined;
let answered = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

function enter(mode: Mode): void {
  document.body.dataset.mode = mode;
  get("sign-in").hidden = mode !== "signed-out";
  get("sign-out").hidden = mode === "signed-out";
  get("console").hidden = mode === "signed-out";
  get("lost").hidden = mode !== "lost";
  get("console").setAttribute("aria-busy", String(mode === "loading"));
}

function signedOut(reason = ""): void {
  clearTimeout(timer);
  api.token.clear();
  before = undefined;
  get("checks").replaceChildren();
  setText(get("version"), "");
  setText(get("uptime"), "");
  setText(get("refusal"), reason);
  get("refusal").hidden = reason === "";
  enter("signed-out");
  get("token").focus();
}

function show(s: Sample): void {
  const { stats } = s;
  setText(get("version"), stats.version);
  setText(get("uptime"), `up ${format.span(stats.uptime_s)}`);
  get("checks").replaceChildren(
    ...stats.ready.map((check) =>
      h("li", { class: check.ok ? "check good" : "check bad", title: check.detail }, check.name, !check.ok && `: ${check.detail}`, check.ok && h("span", { class: "only-read" }, " is fine")),
    ),
  );
  pipeline.show(s);
  charts.add(s);
  hot.show(s);
  showAudits(s, Date.parse(stats.time));
}

async function poll(): Promise<void> {
  try {
    const stats = await api.stats();
    if (!api.token.get()) return; // signed out meanwhile
    answered = Date.now();
    enter("live");
    show(sample(stats, before));
    before = stats;
  } catch (error) {
    const { status, message } = error as api.ConsoleError;
    if (status === 401) return signedOut("This token is not accepted. It may have expired.");
    if (status === 403) return signedOut("This token lacks the scope likes:admin.");
    if (answered > 0) charts.add(undefined);
    enter("lost");
    setText(get("lost-text"), message);
    setText(get("lost-age"), answered === 0 ? "Trying again." : `Trying again. The figures are ${format.span((Date.now() - answered) / 1000)} old.`);
    before = undefined;
  }
  timer = setTimeout(() => void poll(), pollEvery);
}

get("sign-in-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const input = get<HTMLInputElement>("token");
  api.token.set(input.value.trim());
  input.value = "";
  enter("loading");
  void poll();
});
get("sign-out").addEventListener("click", () => signedOut());
get("copy-command").addEventListener("click", async () => {
  await navigator.clipboard?.writeText(get("command").textContent!).catch(() => undefined);
  setText(get("copy-command"), "Copied");
  setTimeout(() => setText(get("copy-command"), "Copy"), 2000);
});
listen();

if (api.token.get()) {
  enter("loading");
  void poll();
} else {
  signedOut();
}

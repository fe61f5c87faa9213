import { get, h, setText } from "../theme/dom.js";

interface Post {
  collection: string;
  id: string;
  title: string;
  text: string;
  author: string;
  emoji?: string;
}

interface Crowd {
  /** Likes a second that the crowd tries to give. */
  rate: number;
  max: number;
  likes_total: number;
}

const tokenURL = "/demo/token";
const pollEvery = 1000;
const steps = 1000; // of the slider
const numbers = new Intl.NumberFormat("en");

async function ask<T>(url: string, init?: RequestInit): Promise<T> {
  const answer = await fetch(url, init);
  if (!answer.ok) throw new Error(`${url}: ${answer.status}`);
  return answer.json() as Promise<T>;
}

/** A stable hue for a name, so that a face keeps its colour. */
function hue(name: string): number {
  let sum = 0;
  for (const char of name) sum = (sum * 31 + char.codePointAt(0)!) % 360;
  return sum;
}

/** Colours are set on the element's own style object, which a strict content policy allows. */
function paint<T extends HTMLElement>(element: T, art: string): T {
  element.style.setProperty("--art", art);
  return element;
}

/** The background of a post. Neighbours are a golden angle apart, so they never look alike. */
function background(place: number): string {
  const at = Math.round((250 + place * 137.5) % 360);
  const to = at + 55;
  return `linear-gradient(135deg, light-dark(hsl(${at} 80% 89%), hsl(${at} 45% 30%)), light-dark(hsl(${to} 82% 80%), hsl(${to} 50% 19%)))`;
}

function face(name: string): HTMLElement {
  const initials = name.split(/[\s-]+/).map((part) => part[0] ?? "").join("").slice(0, 2).toUpperCase();
  return paint(h("span", { class: "face", "aria-hidden": "true" }, initials), `hsl(${hue(name)} 45% 32%)`);
}

function card(post: Post, place: number): HTMLElement {
  const first = place === 0;
  return h(
    "article",
    { class: first ? "post first" : "post" },
    paint(h("div", { class: "art", "aria-hidden": "true" }, h("span", {}, post.emoji ?? "✨")), background(place)),
    h("div", { class: "words" }, first && h("span", { class: "badge" }, "Going viral"), h("h3", {}, post.title), h("p", {}, post.text)),
    h(
      "div",
      { class: "foot" },
      h("span", { class: "author" }, face(post.author), h("span", {}, post.author)),
      h("like-button", {
        collection: post.collection,
        item: post.id,
        label: `Like “${post.title}”`,
        "token-url": tokenURL,
        format: first ? "exact" : undefined,
      }),
    ),
  );
}

function blank(first: boolean): HTMLElement {
  return h(
    "div",
    { class: first ? "post first blank" : "post blank", "aria-hidden": "true" },
    h("div", { class: "art" }),
    h("div", { class: "words" }, h("i"), h("i")),
    h("div", { class: "foot" }),
  );
}

async function showFeed(): Promise<void> {
  const feed = get("feed");
  const trouble = get("trouble");
  trouble.hidden = true;
  feed.setAttribute("aria-busy", "true");
  feed.replaceChildren(...Array.from({ length: 7 }, (_, i) => blank(i === 0)));
  try {
    const { posts } = await ask<{ posts: Post[] }>("/demo/feed");
    feed.replaceChildren(...posts.map(card));
    if (posts.length === 0) throw new Error("empty");
  } catch {
    feed.replaceChildren();
    setText(trouble.querySelector("p")!, "The feed could not be loaded. Is the demo still running?");
    trouble.hidden = false;
  }
  feed.setAttribute("aria-busy", "false");
}

async function showVisitor(): Promise<void> {
  try {
    const { user } = await ask<{ user: string }>(tokenURL, { cache: "no-store" });
    const place = get("visitor");
    place.replaceChildren(face(user), h("span", { class: "only-read" }, "You are "), h("b", {}, user));
    place.hidden = false;
  } catch {
    // The buttons say it when a tap needs a visitor.
  }
}

/** The slider is finer where rates are low: its steps grow with the rate. */
function rateAt(position: number, max: number): number {
  return position === 0 ? 0 : Math.round(Math.exp((position / steps) * Math.log(max)));
}

function positionOf(rate: number, max: number): number {
  return rate < 1 || max <= 1 ? 0 : Math.round((Math.log(rate) / Math.log(max)) * steps);
}

function watchCrowd(): void {
  const slider = get<HTMLInputElement>("rate");
  let max = 1;
  let last: { at: number; total: number } | undefined;
  let busy = 0; // the slider is the visitor's until its last change is sent

  const describe = (rate: number) => {
    const text = rate === 0 ? "paused" : `${numbers.format(rate)} likes/s`;
    setText(get("rate-text"), text);
    slider.setAttribute("aria-valuetext", text);
  };

  slider.addEventListener("input", async () => {
    const rate = rateAt(Number(slider.value), max);
    describe(rate);
    const mine = ++busy;
    await new Promise((done) => setTimeout(done, 150));
    if (mine !== busy) return;
    const body = JSON.stringify({ rate });
    await ask("/demo/crowd", { method: "POST", headers: { "Content-Type": "application/json" }, body }).catch(() => undefined);
    if (mine === busy) busy = 0;
  });

  const poll = async () => {
    try {
      const crowd = await ask<Crowd>("/demo/crowd", { cache: "no-store" });
      const now = performance.now();
      max = crowd.max;
      slider.disabled = false;
      if (busy === 0) {
        slider.value = String(positionOf(crowd.rate, max));
        describe(crowd.rate);
      }
      setText(get("total"), numbers.format(crowd.likes_total));
      if (last) setText(get("speed"), numbers.format(Math.max(0, Math.round(((crowd.likes_total - last.total) * 1000) / (now - last.at)))));
      last = { at: now, total: crowd.likes_total };
    } catch {
      slider.disabled = true;
      last = undefined;
      setText(get("speed"), "–");
    }
    setTimeout(() => void poll(), pollEvery);
  };
  void poll();
}

function showSnippet(): void {
  const snippet = `<script type="module" src="${location.origin}/button.js"></script>\n\n<like-button collection="posts" item="42" token-url="/my/likes-token"></like-button>`;
  get("snippet").textContent = snippet;
  get("copy").addEventListener("click", async () => {
    const done = await navigator.clipboard?.writeText(snippet).then(
      () => true,
      () => false,
    );
    setText(get("copy"), done ? "Copied" : "Select it");
    if (!done) getSelection()?.selectAllChildren(get("snippet"));
    setTimeout(() => setText(get("copy"), "Copy"), 2000);
  });
}

get("again").addEventListener("click", () => void showFeed());
showSnippet();
void showFeed();
void showVisitor();
watchCrowd();

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { configure, LikeButton } from "../src/button.js";
import { pass, Server } from "./server.js";

let server: Server;

beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(Math, "random").mockReturnValue(1);
  Element.prototype.animate ??= vi.fn() as any;
  server = new Server();
  configure({ server: "http://likes.test/", token: () => "t1", tokenUrl: undefined });
});

afterEach(async () => {
  document.body.replaceChildren();
  await pass(100_000);
  vi.useRealTimers();
});

/** Puts a button on the page; more attributes as name, value. */
function add(item: string, attributes: Record<string, string> = {}): LikeButton {
  const element = document.createElement("like-button");
  for (const [name, value] of Object.entries({ collection: "posts", item, ...attributes })) element.setAttribute(name, value);
  document.body.append(element);
  return element;
}

const inner = (element: LikeButton) => element.shadowRoot!.querySelector("button")!;
const shown = (element: LikeButton) => element.shadowRoot!.querySelector(".count")!.textContent;
const message = (element: LikeButton) => element.shadowRoot!.querySelector("[part=message]")!.textContent;
const tap = (element: LikeButton) => inner(element).click();

/** A ready button with a count, and its stream. */
async function ready(count = 10, attributes: Record<string, string> = {}) {
  server.counts.set("posts/1", count);
  const element = add("1", attributes);
  await pass(60);
  const stream = server.streams.at(-1)!;
  stream.opened();
  return { element, stream };
}

function record(element: LikeButton, name: string): any[] {
  const events: any[] = [];
  element.addEventListener(name, (event) => events.push((event as CustomEvent).detail));
  return events;
}

describe("reading", () => {
  it("asks for all buttons of the page in one call, at most 100 at a time", async () => {
    for (let i = 0; i < 130; i++) add(String(i));
    await pass(60);
    expect(server.asked().map(({ body }) => body.items.length)).toEqual([100, 30]);
  });

  it("asks with a cacheable GET when nobody is signed in", async () => {
    configure({ token: undefined });
    add("1");
    add("2");
    await pass(60);
    expect(server.asked().map(({ method, url }) => method + url.search)).toEqual(["GET?posts=1,2"]);
  });

  it("shows one item in several buttons alike", async () => {
    server.counts.set("posts/1", 7);
    const [a, b] = [add("1"), add("1")];
    await pass(60);
    tap(a);
    expect([a.count, b.count, b.liked]).toEqual([8, 8, true]);
    expect(server.asked()[0]!.body.items).toHaveLength(1);
  });

  it("shows what the page was rendered with before the answer", () => {
    const element = add("1", { "initial-count": "1234", "initial-liked": "" });
    expect([shown(element), element.liked]).toEqual(["1.2K", true]);
  });

  it("tries again when the first answer is lost", async () => {
    server.reads = () => "lost";
    const element = add("1");
    await pass(60);
    expect(shown(element)).toBe("–");
    server.reads = undefined;
    server.counts.set("posts/1", 3);
    await pass(30_000);
    expect(shown(element)).toBe("3");
  });

  it("follows a changed item", async () => {
    const { element } = await ready(10);
    server.counts.set("posts/2", 20);
    element.setAttribute("item", "2");
    await pass(60);
    expect(shown(element)).toBe("20");
    tap(element);
    await pass();
    expect(server.writes()).toEqual(["PUT /v1/posts/2/like"]);
  });

  it("reads as somebody else after configure", async () => {
    const { element } = await ready(10);
    server.liked.add("posts/1");
    configure({ token: () => "t2" });
    await pass(60);
    expect(element.liked).toBe(true);
    expect(server.asked().at(-1)!.token).toBe("t2");
  });

  it("sends the token of configure to its server only", async () => {
    add("1", { server: "http://elsewhere.test/" });
    await pass(60);
    expect(server.asked().map(({ url, token }) => [url.host, token])).toEqual([["elsewhere.test", undefined]]);
  });

  it("gets a token where token-url says, with cookies", async () => {
    const fetched = vi.spyOn(globalThis, "fetch");
    fetched.mockImplementationOnce(async () => new Response('{"token":"from-url"}'));
    add("1", { "token-url": "/my-token" });
    await pass(60);
    expect(fetched.mock.calls[0]).toEqual(["/my-token", { credentials: "include", cache: "no-store" }]);
    expect(server.asked()[0]!.token).toBe("from-url");
  });
});

describe("a tap", () => {
  it("answers at once, is sent once and confirmed", async () => {
    const { element } = await ready(10);
    const changes = record(element, "like-change");
    tap(element);
    expect([element.liked, element.count, shown(element), inner(element).getAttribute("aria-pressed")]).toEqual([true, 11, "11", "true"]);
    await pass();
    expect(server.writes()).toEqual(["PUT /v1/posts/1/like"]);
    expect(changes).toEqual([
      { collection: "posts", item: "1", liked: true, count: 11, settled: false },
      { collection: "posts", item: "1", liked: true, count: 11, settled: true },
    ]);
  });

  it("500 times in a row ends in the right state with few requests", async () => {
    const { element } = await ready(10);
    for (let i = 0; i < 501; i++) {
      tap(element);
      await pass(4);
    }
    await pass(1000);
    expect([element.liked, element.count, server.liked.has("posts/1")]).toEqual([true, 11, true]);
    expect(server.writes().length).toBeLessThan(12);
  });

  it("has one request on its way", async () => {
    const { element } = await ready(10);
    let answer!: () => void;
    server.script.push((usual) => new Promise((done) => (answer = () => done(usual()))));
    tap(element);
    tap(element);
    await pass(5000);
    expect(server.writes()).toEqual(["PUT /v1/posts/1/like"]);
    answer();
    await pass(1000);
    expect(server.writes()).toEqual(["PUT /v1/posts/1/like", "DELETE /v1/posts/1/like"]);
    expect([element.liked, element.count]).toEqual([false, 10]);
  });

  it("does nothing while disabled", async () => {
    const { element } = await ready(10, { disabled: "" });
    element.toggle();
    await pass();
    expect([element.liked, server.writes()]).toEqual([false, []]);
    expect(inner(element).disabled).toBe(true);
  });
});

describe("a refusal", () => {
  it.each([
    [401, {}, "Sign in to like this."],
    [403, {}, "Not accepted."],
    [400, {}, "Not accepted."],
    [429, { "Retry-After": "3" }, "Too fast: try again in 3 s."],
  ])("by %i takes the tap back and says why", async (status, headers, text) => {
    const { element } = await ready(10);
    const errors = record(element, "like-error");
    const signIn = record(element, "like-auth-required");
    server.script.push({ status, headers, body: { code: "x" } }, { status, headers });
    tap(element);
    await pass();
    expect([element.liked, element.count, message(element)]).toEqual([false, 10, text]);
    expect(errors.map(({ error }) => error.status)).toEqual([status]);
    expect(signIn).toHaveLength(status === 401 ? 1 : 0);
    await pass(6000);
    expect(message(element)).toBe("");
    expect(server.writes()).toHaveLength(1);
  });

  it("says nothing when the page handles like-auth-required", async () => {
    const { element } = await ready(10);
    element.addEventListener("like-auth-required", (event) => event.preventDefault());
    server.script.push({ status: 401 });
    tap(element);
    await pass();
    expect([element.liked, message(element)]).toEqual([false, ""]);
  });

  it("of an old token is answered with a fresh one", async () => {
    let n = 0;
    configure({ token: async () => `t${++n}` });
    const { element } = await ready(10);
    server.script.push({ status: 401 });
    tap(element);
    await pass();
    expect(server.seen.filter(({ method }) => method === "PUT").map(({ token }) => token)).toEqual(["t1", "t2"]);
    expect([element.liked, element.count]).toEqual([true, 11]);
  });
});

describe("without a connection", () => {
  it("a tap waits visibly, is repeated, and ends exact", async () => {
    const { element } = await ready(10);
    server.script.push("lost", { status: 503 }, { status: 500 });
    tap(element);
    await pass();
    expect([element.liked, element.count, element.pending, message(element)]).toEqual([true, 11, true, "Waiting for the connection…"]);
    expect(inner(element).parentElement!.getAttribute("part")).toBe("button liked pending tapped");
    await pass(500 + 1000 + 2000);
    expect(server.writes()).toEqual(Array(4).fill("PUT /v1/posts/1/like"));
    expect([element.liked, element.count, element.pending, message(element)]).toEqual([true, 11, false, ""]);
  });

  it("an answer that was lost is not counted twice", async () => {
    const { element } = await ready(10);
    server.script.push((usual) => (usual(), "lost"));
    tap(element);
    await pass(600);
    expect([element.count, server.counts.get("posts/1"), element.pending]).toEqual([11, 11, false]);
  });

  it("waits as long as Retry-After says, even when the connection is back", async () => {
    const { element } = await ready(10);
    server.script.push({ status: 503, headers: { "Retry-After": "5" } });
    tap(element);
    await pass(1000);
    dispatchEvent(new Event("online"));
    await pass(3900);
    expect(server.writes()).toHaveLength(1);
    await pass(200);
    expect([server.writes().length, element.pending]).toEqual([2, false]);
  });

  it("repeats at once when the connection is back", async () => {
    const { element, stream } = await ready(10);
    server.script.push("lost", "lost", "lost", "lost", "lost", "lost", "lost");
    tap(element);
    await pass(40_000);
    expect(element.pending).toBe(true);
    server.script.length = 0;
    stream.opened();
    await pass();
    expect([element.pending, server.counts.get("posts/1")]).toEqual([false, 11]);
  });

  it("delivers a tap although the button has left the page", async () => {
    const { element } = await ready(10);
    server.script.push("lost");
    tap(element);
    await pass();
    element.remove();
    await pass(1000);
    expect(server.liked.has("posts/1")).toBe(true);
  });

  it("is limited in a repetition: that is waited for and not taken back", async () => {
    const { element } = await ready(10);
    server.script.push("lost", { status: 429, headers: { "Retry-After": "1" } });
    tap(element);
    await pass(600);
    expect([element.liked, element.pending]).toEqual([true, true]);
    await pass(1500);
    expect([element.count, element.pending]).toEqual([11, false]);
  });

  it("is refused after an attempt that may have counted: the truth is read again", async () => {
    const { element } = await ready(10);
    server.script.push((usual) => (usual(), "lost"), { status: 403 });
    tap(element);
    await pass(600);
    expect([element.liked, element.count, element.pending]).toEqual([true, 11, false]);
  });
});

describe("live counts", () => {
  it("share one stream for all buttons of the page", async () => {
    for (let i = 0; i < 40; i++) add(String(i));
    await pass(60);
    expect(server.open.map(({ url }) => new URL(url).searchParams.get("posts")!.split(",").length)).toEqual([40]);
  });

  it("take two streams of 50, and read the rest from time to time", async () => {
    for (let i = 0; i < 130; i++) add(String(i));
    await pass(60);
    for (const stream of server.open) stream.opened();
    expect(server.open.map(({ url }) => new URL(url).searchParams.get("posts")!.split(",").length)).toEqual([50, 50]);
    const before = server.asked().length;
    server.counts.set("posts/129", 5);
    await pass(7000);
    expect(server.asked().slice(before).map(({ body }) => body.items.length)).toEqual([30]);
    expect((document.body.lastElementChild as LikeButton).count).toBe(5);
  });

  it("read ids that no stream can name", async () => {
    add("a,b");
    await pass(60);
    expect(server.open).toEqual([]);
    expect(server.asked()[0]!.method).toBe("POST");
  });

  it("tick to the newest version and end exact", async () => {
    const { element, stream } = await ready(10);
    stream.say("1", 250, "5");
    stream.say("1", 90, "4");
    await pass(300);
    expect(Number(shown(element))).toBeGreaterThan(10);
    expect(Number(shown(element))).toBeLessThan(250);
    await pass(1000);
    expect(shown(element)).toBe("250");
  });

  it("jump when people prefer no motion", async () => {
    vi.stubGlobal("matchMedia", () => ({ matches: true }));
    const { element, stream } = await ready(10);
    stream.say("1", 250, "5");
    expect(shown(element)).toBe("250");
  });

  it("are polled while a stream is refused, and the stream is tried again", async () => {
    const { element, stream } = await ready(10);
    stream.refused();
    server.counts.set("posts/1", 12);
    for (let i = 0; i < 20; i++) {
      await pass(1000);
      for (const again of server.open) again.refused();
    }
    expect(element.count).toBe(12);
    expect(server.streams.length).toBeGreaterThan(2);
    expect(server.streams.length).toBeLessThan(6);
  });

  it("are given back while nobody looks, and taken up again", async () => {
    const { element } = await ready(10);
    const hidden = vi.spyOn(document, "hidden", "get").mockReturnValue(true);
    document.dispatchEvent(new Event("visibilitychange"));
    await pass(10_100);
    expect(server.open).toEqual([]);
    server.counts.set("posts/1", 50);
    hidden.mockReturnValue(false);
    document.dispatchEvent(new Event("visibilitychange"));
    await pass(60);
    expect(server.open).toHaveLength(1);
    expect(element.count).toBe(50);
  });

  it("end when the last button leaves", async () => {
    const { element } = await ready(10);
    element.remove();
    await pass(60);
    expect(server.open).toEqual([]);
  });

  it("survive a button that moves", async () => {
    const { element, stream } = await ready(10);
    document.body.append(document.createElement("div"));
    document.querySelector("div")!.append(element);
    await pass(60);
    expect(server.open).toEqual([stream]);
    expect(server.asked()).toHaveLength(1);
  });

  it("are shared with another copy of the script", async () => {
    const { stream } = await ready(10);
    vi.resetModules();
    const { LikeButton: Copy } = await import("../src/button.js");
    expect(Copy).not.toBe(LikeButton);
    customElements.define("like-copy", class extends Copy {});
    const copy = document.createElement("like-copy") as LikeButton;
    copy.setAttribute("collection", "posts");
    copy.setAttribute("item", "1");
    document.body.append(copy);
    await pass(60);
    expect(copy.count).toBe(10);
    expect(server.open).toEqual([stream]);
  });
});

describe("the accessible name", () => {
  it("has the exact number", async () => {
    document.documentElement.lang = "en";
    const { element } = await ready(1_234_567);
    expect([shown(element), inner(element).getAttribute("aria-label")]).toEqual(["1.2M", "Like, 1,234,567 likes"]);
  });

  it("can be written in another language", async () => {
    const { element } = await ready(1_234_567, { label: "Gefällt mir", "label-count": "{count}-mal", lang: "de" });
    expect(inner(element).getAttribute("aria-label")).toBe("Gefällt mir, 1.234.567-mal");
  });

  it("knows one like", async () => {
    const { element } = await ready(1);
    expect(inner(element).getAttribute("aria-label")).toBe("Like, 1 like");
  });

  it("follows slowly while the button has the focus", async () => {
    const { element, stream } = await ready(10);
    inner(element).focus();
    stream.say("1", 20, "1");
    await pass(1000);
    expect(inner(element).getAttribute("aria-label")).toBe("Like, 10 likes");
    await pass(4100);
    expect(inner(element).getAttribute("aria-label")).toBe("Like, 20 likes");
  });

  it("is exact at once after a tap", async () => {
    const { element } = await ready(10);
    inner(element).focus();
    tap(element);
    expect(inner(element).getAttribute("aria-label")).toBe("Like, 11 likes");
  });
});

it("writes exact numbers where asked", async () => {
  document.documentElement.lang = "en";
  const { element } = await ready(1_234_567, { format: "exact" });
  expect(shown(element)).toBe("1,234,567");
  element.setAttribute("format", "short");
  expect(shown(element)).toBe("1.2M");
});

it("is inert without an item", () => {
  const element = document.createElement("like-button");
  document.body.append(element);
  expect(inner(element).disabled).toBe(true);
  element.toggle();
  expect([element.liked, element.count]).toEqual([false, undefined]);
});

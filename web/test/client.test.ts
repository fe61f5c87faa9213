import { beforeEach, describe, expect, it, vi } from "vitest";
import { LikesClient, LikesError } from "../src/client.js";

const item = { collection: "posts", id: "a/b c" };
let calls: { url: string; init: RequestInit }[];

function answers(...replies: (Response | Error)[]): void {
  calls = [];
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    calls.push({ url, init });
    const reply = replies.shift()!;
    if (reply instanceof Error) throw reply;
    return reply;
  });
}

const json = (body: unknown, status = 200, headers = {}) => new Response(JSON.stringify(body), { status, headers });
const problem = (status: number, code: string, headers = {}) => json({ code, detail: "why", title: "what" }, status, headers);
const jwt = (exp: number) => `e30.${btoa(JSON.stringify({ exp })).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "")}.x`;

let client: LikesClient;
beforeEach(() => {
  client = new LikesClient({ server: "http://likes.test/base", token: "t" });
});

describe("requests", () => {
  it("encode names once and carry the token", async () => {
    answers(json({ liked: true, count: 3 }), json({ liked: false, count: 2 }), json({ liked: false, count: 2 }));
    expect(await client.like(item)).toEqual({ liked: true, count: 3 });
    await client.unlike(item);
    await client.get(item);
    expect(calls.map(({ url, init }) => `${init.method} ${url}`)).toEqual([
      "PUT http://likes.test/base/v1/posts/a%2Fb%20c/like",
      "DELETE http://likes.test/base/v1/posts/a%2Fb%20c/like",
      "GET http://likes.test/base/v1/posts/a%2Fb%20c/like",
    ]);
    expect(calls[0]!.init.headers).toEqual({ Authorization: "Bearer t" });
  });

  it("for counts keep the order and name friends", async () => {
    answers(json({ counts: [] }));
    await client.counts([{ collection: "games", id: "1,2" }, item], ["ada"]);
    expect(JSON.parse(calls[0]!.init.body as string)).toEqual({ items: [{ collection: "games", id: "1,2" }, item], friends: ["ada"] });
  });

  it.each([
    [[{ collection: "posts", id: "1" }, { collection: "games", id: "1" }], "POST"],
    [[{ collection: "token", id: "1" }], "POST"],
    [[{ collection: "posts", id: "1,2" }], "POST"],
    [Array.from({ length: 100 }, () => ({ collection: "posts", id: "x".repeat(60) })), "POST"],
    [[{ collection: "posts", id: "é" }, { collection: "posts", id: "2" }], "GET"],
  ])("for counts without a token use the method that can name them (%#)", async (items, method) => {
    answers(json({ counts: [] }));
    await new LikesClient({ server: "http://likes.test" }).counts(items);
    expect(calls[0]!.init.method).toBe(method);
    if (method === "GET") expect(calls[0]!.url).toBe("http://likes.test/v1/likes/counts?posts=%C3%A9,2");
  });

  it("walk lists to the end", async () => {
    answers(json({ likers: [{ user: "a" }, { user: "b" }], next_cursor: "c+1" }), json({ likers: [{ user: "c" }] }));
    const users: string[] = [];
    for await (const { user } of client.likers(item, 2)) users.push(user);
    expect(users).toEqual(["a", "b", "c"]);
    expect(calls[1]!.url).toBe("http://likes.test/base/v1/posts/a%2Fb%20c/likers?limit=2&cursor=c%2B1");
  });

  it("walk only as far as they are followed", async () => {
    answers(json({ likes: [{ id: "1" }, { id: "2" }], next_cursor: "c" }));
    for await (const like of client.mine()) {
      expect(like.id).toBe("1");
      break;
    }
    expect(calls).toHaveLength(1);
  });
});

describe("failures", () => {
  it.each([
    [problem(429, "rate_limited", { "Retry-After": "2" }), { status: 429, code: "rate_limited", message: "why", retryAfter: 2000, temporary: true }],
    [problem(503, "overloaded"), { status: 503, code: "overloaded", retryAfter: undefined, temporary: true }],
    [problem(403, "missing_scope"), { status: 403, code: "missing_scope", temporary: false }],
    [new Response("<html>", { status: 502 }), { status: 502, code: "", temporary: true }],
    [new Response("not json"), { status: 0, code: "network", temporary: true }],
    [new TypeError("failed"), { status: 0, code: "network", temporary: true }],
  ])("are LikesErrors (%#)", async (reply, want) => {
    answers(reply);
    const error = await client.like(item).catch((e) => e);
    expect(error).toBeInstanceOf(LikesError);
    expect(error).toMatchObject(want);
  });

  it("of a token ask for a fresh one, once", async () => {
    let n = 0;
    client = new LikesClient({ server: "http://likes.test", token: () => `t${++n}` });
    answers(problem(401, "invalid_token"), problem(401, "invalid_token"));
    await expect(client.like(item)).rejects.toMatchObject({ status: 401 });
    expect(calls.map(({ init }) => (init.headers as any).Authorization)).toEqual(["Bearer t1", "Bearer t2"]);
  });

  it("of a fixed token are not repeated", async () => {
    answers(problem(401, "invalid_token"));
    await expect(client.like(item)).rejects.toMatchObject({ status: 401 });
    expect(calls).toHaveLength(1);
  });

  it("of the source of tokens are temporary, and it is asked again", async () => {
    const token = vi.fn().mockRejectedValueOnce(new Error("down")).mockResolvedValue("t");
    client = new LikesClient({ server: "http://likes.test", token });
    answers(json({ liked: true, count: 1 }));
    await expect(client.like(item)).rejects.toMatchObject({ code: "token", temporary: true });
    expect(await client.like(item)).toEqual({ liked: true, count: 1 });
  });
});

describe("tokens", () => {
  it("are kept until shortly before they expire, and asked for once at a time", async () => {
    vi.useFakeTimers({ now: 1_000_000_000 });
    const token = vi.fn(async () => jwt(Date.now() / 1000 + 60));
    client = new LikesClient({ server: "http://likes.test", token });
    answers(...Array.from({ length: 4 }, () => json({ liked: true, count: 1 })));
    await Promise.all([client.like(item), client.like(item)]);
    expect(token).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(29_000);
    await client.like(item);
    expect(token).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(2000);
    await client.like(item);
    expect(token).toHaveBeenCalledTimes(2);
    vi.useRealTimers();
  });

  it("are asked for again while there is none", async () => {
    const token = vi.fn(async () => undefined);
    client = new LikesClient({ server: "http://likes.test", token });
    answers(json({}), json({}));
    await client.get(item);
    await client.get(item);
    expect(token).toHaveBeenCalledTimes(2);
    expect(calls[0]!.init.headers).toEqual({});
  });
});

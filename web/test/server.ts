import { vi } from "vitest";

/** A request as the scripted server saw it. */
export interface Seen {
  method: string;
  url: URL;
  token: string | undefined;
  body: any;
}

type Reply = { status?: number; body?: unknown; headers?: Record<string, string> } | "lost";

/** A server in memory: it answers counts and likes, and can be told to fail. */
export class Server {
  readonly seen: Seen[] = [];
  readonly counts = new Map<string, number>();
  readonly liked = new Set<string>();
  readonly streams: Stream[] = [];
  /** Replaces the next answers to likes, in order. */
  readonly script: (Reply | ((usual: () => Reply) => Reply | Promise<Reply>))[] = [];
  /** Replaces every answer to a read of counts. */
  reads: (() => Reply) | undefined;

  constructor() {
    vi.stubGlobal("fetch", (url: string | URL, init: RequestInit = {}) => this.#answer(new URL(url, "http://page.test/"), init));
    const { streams } = this;
    vi.stubGlobal(
      "EventSource",
      class extends Stream {
        constructor(url: string) {
          super(url);
          streams.push(this);
        }
      },
    );
  }

  get open(): Stream[] {
    return this.streams.filter((stream) => stream.readyState !== 2);
  }

  writes(): string[] {
    return this.seen.filter(({ method }) => method === "PUT" || method === "DELETE").map(({ method, url }) => `${method} ${url.pathname}`);
  }

  asked(): Seen[] {
    return this.seen.filter(({ url }) => url.pathname.endsWith("/counts"));
  }

  async #answer(url: URL, init: RequestInit): Promise<Response> {
    const method = init.method ?? "GET";
    const token = (init.headers as Record<string, string> | undefined)?.Authorization?.slice(7);
    this.seen.push({ method, url, token, body: init.body ? JSON.parse(init.body as string) : undefined });
    const usual = () => this.#usual(method, url, init, token);
    const write = method === "PUT" || method === "DELETE";
    let reply: Reply = usualReply;
    const scripted = write ? this.script.shift() : undefined;
    if (typeof scripted === "function") reply = await scripted(usual);
    else if (scripted) reply = scripted;
    else if (url.pathname.endsWith("/counts") && this.reads) reply = this.reads();
    else reply = usual();
    if (reply === "lost") throw new TypeError("failed to fetch");
    return new Response(JSON.stringify(reply.body ?? {}), { status: reply.status ?? 200, headers: reply.headers ?? {} });
  }

  #usual(method: string, url: URL, init: RequestInit, token: string | undefined): Reply {
    if (url.pathname.endsWith("/counts")) {
      const items: { collection: string; id: string }[] = init.body
        ? JSON.parse(init.body as string).items
        : [...url.searchParams].flatMap(([collection, ids]) => ids.split(",").map((id) => ({ collection, id })));
      return {
        body: {
          counts: items.map(({ collection, id }) => {
            const key = `${collection}/${id}`;
            const count = this.counts.get(key) ?? 0;
            return { collection, id, count, display: String(count), ...(token ? { liked_by_me: this.liked.has(key) } : {}) };
          }),
        },
      };
    }
    const match = /\/v1\/(.+)\/like$/.exec(url.pathname);
    if (!match) return { status: 404 };
    const key = match[1]!;
    const wanted = method === "PUT";
    if (this.liked.has(key) !== wanted) {
      this.counts.set(key, (this.counts.get(key) ?? 0) + (wanted ? 1 : -1));
      if (wanted) this.liked.add(key);
      else this.liked.delete(key);
    }
    return { body: { liked: wanted, count: this.counts.get(key) } };
  }
}

const usualReply: Reply = {};

/** A stand-in for EventSource that the test drives. */
export class Stream {
  static readonly CLOSED = 2;
  readonly CLOSED = 2;
  readyState = 0;
  onopen: (() => void) | undefined;
  onerror: (() => void) | undefined;
  #listener: ((event: { data: string }) => void) | undefined;

  constructor(readonly url: string) {}

  addEventListener(_: string, listener: (event: { data: string }) => void): void {
    this.#listener = listener;
  }

  close(): void {
    this.readyState = 2;
  }

  opened(): void {
    this.readyState = 1;
    this.onopen?.();
  }

  refused(): void {
    this.readyState = 2;
    this.onerror?.();
  }

  say(id: string, count: number, version: string, collection = "posts"): void {
    this.#listener?.({ data: JSON.stringify({ counts: [{ collection, id, count, display: "", version }] }) });
  }
}

/** Lets everything that is ready happen, and what becomes ready within some time. */
export async function pass(ms = 0): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
}

import type { components } from "./api.js";

/** A thing that can be liked, for example `{collection: "posts", id: "42"}`. */
export interface Item {
  readonly collection: string;
  readonly id: string;
}

/** The caller's state after a command, and the count including the caller's own like. */
export type Outcome = components["schemas"]["Outcome"];
/** What a page of counts says about one item. */
export type Count = components["schemas"]["Counts"]["counts"][number];
/** A total as the live stream tells it; the larger version (a decimal integer) is newer. */
export interface LiveCount extends Item {
  readonly count: number;
  readonly display: string;
  readonly version: string;
}

/** Where tokens come from: a value, or a function that is asked again when a token expires or is refused. */
export type TokenSource = string | (() => string | undefined | Promise<string | undefined>);

/** How to reach a server, and as whom. */
export interface ClientOptions {
  /** Base URL of the server, absolute. Default: where this script came from. */
  readonly server?: string | undefined;
  readonly token?: TokenSource | undefined;
}

/** A request that was not answered with success. */
export class LikesError extends Error {
  override readonly name = "LikesError";
  constructor(
    /** HTTP status; 0 when there was no answer. */
    readonly status: number,
    /** Stable code of the problem; `network` or `token` when there was no answer, or no token to ask with. */
    readonly code: string,
    message: string,
    /** Milliseconds after which the server asks to come back. */
    readonly retryAfter?: number,
  ) {
    super(message);
  }

  /** Repeating the same request may help, and is harmless. */
  get temporary(): boolean {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

/** A live stream that was opened; it reconnects by itself until it is closed. */
export interface LiveStream {
  close(): void;
}

/** What the opener of a stream wants to hear. */
export interface StreamListener {
  /** Totals that changed; first those of all items. */
  counts(counts: LiveCount[]): void;
  /** The stream is open, again or for the first time. */
  open(): void;
  /** The server ended the stream for good or refuses it. */
  closed(): void;
}

const longestURL = 4000;
const timeout = 10_000;

/** Reports whether an item can be named in a query: values are split at commas, and two names mean tokens. */
export function fitsQuery(item: Item): boolean {
  return !item.id.includes(",") && item.collection !== "token" && item.collection !== "access_token";
}

/** The query that names items, grouped by collection. */
export function queryOf(items: readonly Item[]): string {
  const ids = new Map<string, string[]>();
  for (const { collection, id } of items) {
    const list = ids.get(collection);
    if (list) list.push(encodeURIComponent(id));
    else ids.set(collection, [encodeURIComponent(id)]);
  }
  return [...ids].map(([collection, list]) => `${collection}=${list.join(",")}`).join("&");
}

/** What the button needs of a server. Every method rejects with a {@link LikesError}. */
export class Transport {
  /** Base URL, ending in a slash. */
  readonly server: string;
  readonly #options: ClientOptions;
  #token: Promise<string | undefined> | undefined;
  #expires = 0;

  constructor(options: ClientOptions = {}) {
    this.server = new URL(options.server ?? ".", import.meta.url).href.replace(/\/*$/, "/");
    this.#options = options;
  }

  /** Likes an item, or takes the like back. Repeating it is harmless. */
  set(item: Item, liked: boolean): Promise<Outcome> {
    return this.call(liked ? "PUT" : "DELETE", `${pathOf(item)}/like`);
  }

  /**
   * Counts of up to 100 items, in request order; with `friends` (up to 1,000
   * users) also how many of them like each item.
   */
  async counts(items: readonly Item[], friends?: readonly string[]): Promise<Count[]> {
    const query = queryOf(items);
    // A GET without a token may be cached, and needs no preflight on other origins.
    const get = !this.#options.token && !friends && query.length < longestURL && items.every((item) => fitsQuery(item) && item.collection === items[0]!.collection);
    const { counts } = get
      ? await this.call<{ counts: Count[] }>("GET", `likes/counts?${query}`)
      : await this.call<{ counts: Count[] }>("POST", "likes/counts", {
          items: items.map(({ collection, id }) => ({ collection, id })),
          friends,
        });
    return counts;
  }

  /** Follows the totals of up to 50 items. The stream is anonymous and needs `EventSource`. */
  stream(items: readonly Item[], listener: StreamListener): LiveStream {
    const source = new EventSource(`${this.server}v1/likes/stream?${queryOf(items)}`);
    source.addEventListener("counts", (event) => {
      listener.counts((JSON.parse(event.data) as { counts: LiveCount[] }).counts);
    });
    source.onopen = () => listener.open();
    source.onerror = () => {
      if (source.readyState === source.CLOSED) listener.closed();
    };
    return source;
  }

  /** Sends a request, and once more with a fresh token when the first is refused. */
  async call<T>(method: string, at: string, body?: unknown): Promise<T> {
    const token = await this.#bearer();
    try {
      return await this.#send<T>(method, at, token, body);
    } catch (error) {
      if ((error as LikesError).status !== 401) throw error;
      this.#token = undefined;
      const fresh = await this.#bearer();
      if (!fresh || fresh === token) throw error;
      return this.#send<T>(method, at, fresh, body);
    }
  }

  async #send<T>(method: string, at: string, token: string | undefined, body?: unknown): Promise<T> {
    const headers: Record<string, string> = {};
    if (token) headers.Authorization = `Bearer ${token}`;
    if (body) headers["Content-Type"] = "application/json";
    let answer: Response;
    let json: any;
    try {
      answer = await fetch(`${this.server}v1/${at}`, {
        method,
        headers,
        body: body ? JSON.stringify(body) : null,
        keepalive: !body, // a tap outlives its page
        signal: AbortSignal.timeout(timeout),
      });
      json = await answer.json().catch((error) => {
        if (answer.ok) throw error;
      });
    } catch (cause) {
      throw new LikesError(0, "network", String(cause));
    }
    if (answer.ok) return json;
    const wait = Number(answer.headers.get("Retry-After")) * 1000 || undefined;
    throw new LikesError(answer.status, json?.code ?? "", json?.detail ?? answer.statusText, wait);
  }

  /** The token, kept until shortly before it expires. A source that fails is no answer, and asked again next time. */
  #bearer(): Promise<string | undefined> {
    if (!this.#token || Date.now() > this.#expires) {
      this.#expires = Infinity;
      this.#token = this.#fresh().catch((cause) => {
        this.#token = undefined;
        throw new LikesError(0, "token", String(cause));
      });
    }
    return this.#token;
  }

  async #fresh(): Promise<string | undefined> {
    const { token } = this.#options;
    const value = (typeof token === "function" ? await token() : token) || undefined;
    this.#expires = expiry(value);
    return value;
  }
}

/** The path of an item below `v1/`. */
export function pathOf({ collection, id }: Item): string {
  return `${encodeURIComponent(collection)}/${encodeURIComponent(id)}`;
}

/** When to ask for a new token: 30 s before a JWT expires; without one, next time. */
function expiry(token: string | undefined): number {
  try {
    const { exp } = JSON.parse(atob(token!.split(".")[1]!.replace(/-/g, "+").replace(/_/g, "/")));
    return exp * 1000 - 30_000 || Infinity;
  } catch {
    return token ? Infinity : 0;
  }
}

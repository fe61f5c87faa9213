import { fitsQuery, queryOf, Transport, type Item, type LikesError, type LiveStream, type TokenSource } from "../transport.js";
import * as state from "./state.js";

/** Settings of all buttons of a page; see {@link configure}. */
export interface PageConfig {
  /** Base URL of the server. Default: where the script came from. */
  server?: string | undefined;
  /** The viewer's token, or a function that gets it. */
  token?: TokenSource | undefined;
  /** Where to get the viewer's token; asked with cookies. */
  tokenUrl?: string | undefined;
}

/** What a button is told besides its state. */
export interface Watcher {
  /** The state changed. */
  changed(): void;
  /** The viewer's wish was confirmed. */
  settled(): void;
  /** The viewer's wish was refused and taken back. */
  refused(error: LikesError): void;
}

/** An item on the page, shared by all its buttons. */
export interface Entry extends Item {
  state: state.State;
  readonly watchers: Set<Watcher>;
  feed: Feed | undefined;
  timer: ReturnType<typeof setTimeout> | undefined;
}

/** One stream and the items that it was opened for. */
interface Feed {
  entries: Set<Entry>;
  stream: LiveStream | undefined;
  failures: number;
}

// Browsers allow six connections to a host over HTTP/1.1, for all tabs together.
const maxFeeds = 2;
const maxFeedItems = 50;
const maxFeedQuery = 4000;
const maxRead = 100;
const pollEvery = 5000;
const hiddenFor = 10_000;

/** All buttons of a page that speak to one server as one viewer. */
export class Page {
  readonly #server: Transport;
  readonly #entries = new Map<string, Entry>();
  readonly #feeds = new Set<Feed>();
  readonly #wanted = new Set<Entry>();
  readonly #failedReads = new Set<Entry>();
  #replan: ReturnType<typeof setTimeout> | undefined;
  #poll: ReturnType<typeof setTimeout> | undefined;
  #hidden: ReturnType<typeof setTimeout> | undefined;
  #asleep = false;
  #readFailures = 0;

  constructor(server: Transport) {
    this.#server = server;
    addEventListener("online", () => this.#hurry());
    document.addEventListener("visibilitychange", () => this.#visible());
  }

  /** Adds a button. `count` and `liked` are what the page was rendered with. */
  join({ collection, id }: Item, watcher: Watcher, count?: number, liked?: boolean): Entry {
    const key = keyOf(collection, id);
    let entry = this.#entries.get(key);
    if (!entry) {
      entry = { collection, id, state: state.initial(count, liked), watchers: new Set(), feed: undefined, timer: undefined };
      this.#entries.set(key, entry);
      this.#read(entry);
      this.#plan();
    }
    entry.watchers.add(watcher);
    return entry;
  }

  /** Removes a button. A wish that is not delivered yet is still delivered. */
  leave(entry: Entry, watcher: Watcher): void {
    entry.watchers.delete(watcher);
    this.#plan();
  }

  /** The viewer taps. */
  tap(entry: Entry): void {
    this.#set(entry, state.tap(entry.state));
  }

  /** Reads every item again, for example because the viewer is another one. */
  refresh(): void {
    for (const entry of this.#entries.values()) this.#read(entry);
  }

  #set(entry: Entry, next: state.State): void {
    if (next === entry.state) return;
    entry.state = next;
    for (const watcher of entry.watchers) watcher.changed();
    this.#proceed(entry);
  }

  /** Sends the wish and shows a held total, now or when their time has come. */
  #proceed(entry: Entry): void {
    clearTimeout(entry.timer);
    const now = Date.now();
    const due = state.next(entry.state) ?? Infinity;
    const wake = Math.min(due, entry.state.held && !entry.state.sending ? entry.state.holdUntil : Infinity);
    if (due <= now) void this.#send(entry);
    else if (wake <= now) this.#set(entry, state.released(entry.state, now));
    else if (wake < Infinity) entry.timer = setTimeout(() => this.#proceed(entry), wake - now);
  }

  async #send(entry: Entry): Promise<void> {
    this.#set(entry, state.send(entry.state));
    try {
      const { liked, count } = await this.#server.set(entry, entry.state.wish);
      this.#set(entry, state.answered(entry.state, liked, count, Date.now()));
      if (state.next(entry.state) === undefined) for (const watcher of entry.watchers) watcher.settled();
    } catch (cause) {
      this.#failed(entry, cause as LikesError);
    }
    if (entry.watchers.size === 0) this.#plan();
  }

  #failed(entry: Entry, error: LikesError): void {
    const before = entry.state;
    // Too many taps are refused, unless an earlier attempt may have been applied.
    if (error.temporary && (error.status !== 429 || before.attempt > 0)) {
      this.#set(entry, state.failed(before, Date.now(), Math.random(), error.retryAfter));
      return;
    }
    this.#set(entry, state.refused(before, Date.now()));
    if (before.wish !== before.liked) for (const watcher of entry.watchers) watcher.refused(error);
    if (before.unsure) this.#read(entry);
  }

  #hurry(): void {
    for (const entry of this.#entries.values()) this.#set(entry, state.hurried(entry.state, Date.now()));
    for (const entry of this.#failedReads) this.#read(entry);
  }

  /** Asks for an item together with all others that are wanted now. */
  #read(entry: Entry): void {
    if (this.#wanted.size === 0) queueMicrotask(() => void this.#readWanted());
    this.#wanted.add(entry);
  }

  async #readWanted(): Promise<void> {
    const wanted = [...this.#wanted].filter(({ watchers }) => watchers.size > 0);
    this.#wanted.clear();
    for (let i = 0; i < wanted.length; i += maxRead) await this.#readPart(wanted.slice(i, i + maxRead));
    this.#pollLater();
  }

  async #readPart(part: Entry[]): Promise<void> {
    const asked = part.map((entry) => entry.state);
    try {
      const counts = await this.#server.counts(part);
      this.#readFailures = 0;
      part.forEach((entry, n) => {
        const { count, liked_by_me } = counts[n]!;
        this.#failedReads.delete(entry);
        this.#set(entry, state.loaded(entry.state, asked[n]!, count, liked_by_me));
      });
    } catch (error) {
      this.#readFailures++;
      // What the server refuses is not asked for again before the page changes.
      if ((error as LikesError).temporary) for (const entry of part) this.#failedReads.add(entry);
    }
  }

  /** Items without a live stream, and those that could not be read, are read from time to time. */
  #pollLater(wait = pollEvery * 2 ** Math.min(this.#readFailures, 4) * (0.75 + Math.random() / 2)): void {
    this.#poll ??= setTimeout(() => {
      this.#poll = undefined;
      if (this.#asleep) return;
      for (const entry of this.#entries.values()) if (!entry.feed?.stream || this.#failedReads.has(entry)) this.#read(entry);
    }, wait);
  }

  #plan(): void {
    this.#replan ??= setTimeout(() => {
      this.#replan = undefined;
      this.#forget();
      this.#assign();
      this.#pollLater();
    }, 50);
  }

  /** Drops items that have no button and nothing to deliver. */
  #forget(): void {
    for (const [key, entry] of this.#entries) {
      if (entry.watchers.size > 0 || entry.state.sending || state.next(entry.state) !== undefined) continue;
      clearTimeout(entry.timer);
      this.#entries.delete(key);
      this.#failedReads.delete(entry);
      entry.feed?.entries.delete(entry);
    }
  }

  /** Gives each item a place on a stream while there is room, and opens the streams that changed. */
  #assign(): void {
    for (const entry of this.#entries.values()) {
      if (entry.feed || !fitsQuery(entry)) continue;
      let feed = [...this.#feeds].find((f) => f.entries.size < maxFeedItems && queryOf([...f.entries, entry]).length < maxFeedQuery);
      if (!feed) {
        if (this.#feeds.size >= maxFeeds) break;
        this.#feeds.add((feed = { entries: new Set(), stream: undefined, failures: 0 }));
      }
      entry.feed = feed;
      feed.entries.add(entry);
      this.#close(feed);
    }
    for (const feed of this.#feeds) {
      if (feed.entries.size === 0) this.#feeds.delete(this.#close(feed));
      else if (!feed.stream) this.#open(feed);
    }
  }

  #close(feed: Feed): Feed {
    feed.stream?.close();
    feed.stream = undefined;
    return feed;
  }

  #open(feed: Feed): void {
    this.#close(feed);
    if (this.#asleep || !this.#feeds.has(feed)) return;
    const stream = this.#server.stream([...feed.entries], {
      open: () => {
        feed.failures = 0;
        this.#hurry();
      },
      counts: (counts) => {
        for (const total of counts) {
          const entry = this.#entries.get(keyOf(total.collection, total.id));
          if (entry) this.#set(entry, state.counted(entry.state, total, Date.now()));
        }
      },
      closed: () => {
        if (feed.stream !== stream) return;
        feed.stream = undefined;
        setTimeout(() => feed.stream ?? this.#open(feed), Math.min(60_000, 2000 * 2 ** feed.failures++) * (0.5 + Math.random()));
        this.#pollLater();
      },
    });
    feed.stream = stream;
  }

  /** A page that nobody looks at gives its streams back: they are few. */
  #visible(): void {
    clearTimeout(this.#hidden);
    if (document.hidden) {
      this.#hidden = setTimeout(() => {
        this.#asleep = true;
        for (const feed of this.#feeds) this.#open(feed);
      }, hiddenFor);
    } else if (this.#asleep) {
      this.#asleep = false;
      for (const feed of this.#feeds) this.#open(feed);
      this.refresh();
    }
  }
}

function keyOf(collection: string, id: string): string {
  return `${collection}/${id}`;
}

/** What all copies of this script on a page share. */
interface Shared {
  config: PageConfig;
  pages: Map<string, Page>;
  /** Called when the settings changed. */
  joined: Set<() => void>;
}

const shared = ((globalThis as any)[Symbol.for("likewise.button.1")] ??= { config: {}, pages: new Map(), joined: new Set() }) as Shared;

/** Buttons that want to join again when the settings change. */
export const joined = shared.joined;

/**
 * Sets the server and the viewer of all buttons on the page. Call it again when
 * the viewer signs in or out.
 */
export function configure(config: PageConfig): void {
  Object.assign(shared.config, config);
  shared.pages.clear();
  for (const join of [...joined]) join();
}

/**
 * The page of a server and a place for tokens; without them, those of {@link configure}.
 * A token goes only to the server that it was configured for.
 */
export function pageOf(server?: string, tokenUrl?: string): Page {
  const key = `${server ?? ""} ${tokenUrl ?? ""}`;
  let page = shared.pages.get(key);
  if (!page) {
    const config = server && server !== shared.config.server ? { server } : shared.config;
    const at = tokenUrl ?? config.tokenUrl;
    page = new Page(new Transport({ server: config.server, token: at ? () => fetchToken(at) : config.token }));
    shared.pages.set(key, page);
  }
  return page;
}

async function fetchToken(url: string): Promise<string | undefined> {
  const answer = await fetch(url, { credentials: "include", cache: "no-store" });
  if (answer.ok) return (await answer.json()).token;
  if (answer.status >= 500) throw new Error(answer.statusText);
  return undefined; // nobody is signed in
}

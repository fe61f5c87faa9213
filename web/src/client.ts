import type { operations } from "./api.js";
import { pathOf, Transport, type Item, type Outcome } from "./transport.js";

export {
  LikesError,
  type ClientOptions,
  type Count,
  type Item,
  type LiveCount,
  type LiveStream,
  type Outcome,
  type StreamListener,
  type TokenSource,
} from "./transport.js";

/** A user who likes an item. */
export type Liker = operations["likers"]["responses"]["200"]["content"]["application/json"]["likers"][number];
/** An item that the caller likes. */
export type Like = operations["myLikes"]["responses"]["200"]["content"]["application/json"]["likes"][number];

/** Speaks to a likewise server. Every method rejects with a `LikesError`. */
export class LikesClient extends Transport {
  /** Likes an item. Repeating it is harmless. */
  like(item: Item): Promise<Outcome> {
    return this.set(item, true);
  }

  /** Takes a like back. Repeating it is harmless. */
  unlike(item: Item): Promise<Outcome> {
    return this.set(item, false);
  }

  /** The caller's own state and the count of one item. */
  get(item: Item): Promise<Outcome> {
    return this.call("GET", `${pathOf(item)}/like`);
  }

  /** Everybody who likes an item, newest first. Pages are fetched as they are needed. */
  likers(item: Item, pageSize?: number): AsyncGenerator<Liker, void> {
    return this.#pages<Liker>("likers", `${pathOf(item)}/likers`, pageSize);
  }

  /** Everything that the caller likes, newest first. */
  mine(pageSize?: number): AsyncGenerator<Like, void> {
    return this.#pages<Like>("likes", "me/likes", pageSize);
  }

  async *#pages<T>(field: string, at: string, pageSize = 50): AsyncGenerator<T, void> {
    let cursor = "";
    do {
      const page = await this.call<Record<string, unknown>>("GET", `${at}?limit=${pageSize}${cursor}`);
      yield* page[field] as T[];
      cursor = page.next_cursor ? `&cursor=${encodeURIComponent(page.next_cursor as string)}` : "";
    } while (cursor);
  }
}

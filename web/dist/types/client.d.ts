import type { operations } from "./api.js";
import { Transport, type Item, type Outcome } from "./transport.js";
export { LikesError, type ClientOptions, type Count, type Item, type LiveCount, type LiveStream, type Outcome, type StreamListener, type TokenSource, } from "./transport.js";
/** A user who likes an item. */
export type Liker = operations["likers"]["responses"]["200"]["content"]["application/json"]["likers"][number];
/** An item that the caller likes. */
export type Like = operations["myLikes"]["responses"]["200"]["content"]["application/json"]["likes"][number];
/** Speaks to a likewise server. Every method rejects with a `LikesError`. */
export declare class LikesClient extends Transport {
    #private;
    /** Likes an item. Repeating it is harmless. */
    like(item: Item): Promise<Outcome>;
    /** Takes a like back. Repeating it is harmless. */
    unlike(item: Item): Promise<Outcome>;
    /** The caller's own state and the count of one item. */
    get(item: Item): Promise<Outcome>;
    /** Everybody who likes an item, newest first. Pages are fetched as they are needed. */
    likers(item: Item, pageSize?: number): AsyncGenerator<Liker, void>;
    /** Everything that the caller likes, newest first. */
    mine(pageSize?: number): AsyncGenerator<Like, void>;
}

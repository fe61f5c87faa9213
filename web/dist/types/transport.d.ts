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
export declare class LikesError extends Error {
    /** HTTP status; 0 when there was no answer. */
    readonly status: number;
    /** Stable code of the problem; `network` or `token` when there was no answer, or no token to ask with. */
    readonly code: string;
    /** Milliseconds after which the server asks to come back. */
    readonly retryAfter?: number | undefined;
    readonly name = "LikesError";
    constructor(
    /** HTTP status; 0 when there was no answer. */
    status: number, 
    /** Stable code of the problem; `network` or `token` when there was no answer, or no token to ask with. */
    code: string, message: string, 
    /** Milliseconds after which the server asks to come back. */
    retryAfter?: number | undefined);
    /** Repeating the same request may help, and is harmless. */
    get temporary(): boolean;
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
/** Reports whether an item can be named in a query: values are split at commas, and two names mean tokens. */
export declare function fitsQuery(item: Item): boolean;
/** The query that names items, grouped by collection. */
export declare function queryOf(items: readonly Item[]): string;
/** What the button needs of a server. Every method rejects with a {@link LikesError}. */
export declare class Transport {
    #private;
    /** Base URL, ending in a slash. */
    readonly server: string;
    constructor(options?: ClientOptions);
    /** Likes an item, or takes the like back. Repeating it is harmless. */
    set(item: Item, liked: boolean): Promise<Outcome>;
    /**
     * Counts of up to 100 items, in request order; with `friends` (up to 1,000
     * users) also how many of them like each item.
     */
    counts(items: readonly Item[], friends?: readonly string[]): Promise<Count[]>;
    /** Follows the totals of up to 50 items. The stream is anonymous and needs `EventSource`. */
    stream(items: readonly Item[], listener: StreamListener): LiveStream;
    /** Sends a request, and once more with a fresh token when the first is refused. */
    call<T>(method: string, at: string, body?: unknown): Promise<T>;
}
/** The path of an item below `v1/`. */
export declare function pathOf({ collection, id }: Item): string;

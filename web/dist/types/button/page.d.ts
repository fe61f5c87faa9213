import { Transport, type Item, type LikesError, type LiveStream, type TokenSource } from "../transport.js";
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
/** All buttons of a page that speak to one server as one viewer. */
export declare class Page {
    #private;
    constructor(server: Transport);
    /** Adds a button. `count` and `liked` are what the page was rendered with. */
    join({ collection, id }: Item, watcher: Watcher, count?: number, liked?: boolean): Entry;
    /** Removes a button. A wish that is not delivered yet is still delivered. */
    leave(entry: Entry, watcher: Watcher): void;
    /** The viewer taps. */
    tap(entry: Entry): void;
    /** Reads every item again, for example because the viewer is another one. */
    refresh(): void;
}
/** Buttons that want to join again when the settings change. */
export declare const joined: Set<() => void>;
/**
 * Sets the server and the viewer of all buttons on the page. Call it again when
 * the viewer signs in or out.
 */
export declare function configure(config: PageConfig): void;
/**
 * The page of a server and a place for tokens; without them, those of {@link configure}.
 * A token goes only to the server that it was configured for.
 */
export declare function pageOf(server?: string, tokenUrl?: string): Page;
export {};

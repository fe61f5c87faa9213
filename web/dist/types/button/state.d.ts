/**
 * What a button knows about its item, and how that changes. Only values and
 * functions: no clock, no network, no page. Times are milliseconds.
 *
 * The server orders totals by version, but the answer to a command has none. So
 * a total that arrives while a command is on its way, or shortly after, may or
 * may not include the command. Such a total is held back instead of being shown
 * twice or one too low.
 */
/** A total of an item. Versions are decimal integers without a limit; the larger one is newer. */
export interface Total {
    readonly count: number;
    readonly version: string;
}
/** Everything about one item and its viewer. Never changed in place. */
export interface State {
    /** The last known total. */
    readonly total: number | undefined;
    /** The total includes the viewer's own like. */
    readonly counted: boolean;
    /** The viewer's like as the server last confirmed it. */
    readonly liked: boolean;
    /** The viewer's like as the viewer wants it. */
    readonly wish: boolean;
    /** A command is on its way. */
    readonly sending: boolean;
    /** Commands sent so far. */
    readonly sent: number;
    /** A failed attempt may have been applied, so the wish must be sent whatever was confirmed. */
    readonly unsure: boolean;
    /** Failed attempts in a row. */
    readonly attempt: number;
    /** No command before this time. */
    readonly due: number;
    /** The server named that time, so nothing may hurry it. */
    readonly told: boolean;
    /** Version of the newest total seen. */
    readonly version: string;
    /** The newest total that is not shown yet. */
    readonly held: Total | undefined;
    /** Until then a total is compared with the last answer before it is shown. */
    readonly holdUntil: number;
}
/** What a button shows. */
export interface View {
    readonly liked: boolean;
    /** Includes the viewer's own wish; undefined while nothing is known. */
    readonly count: number | undefined;
    /** The wish could not be delivered yet. */
    readonly pending: boolean;
}
/** Least time between two commands for one item: rapid taps become one command. */
export declare const PACE = 250;
/** How long a total may lag behind the answer to a command. */
export declare const LAG = 3000;
/** An item about which nothing is known, or only what the page was rendered with. */
export declare function initial(count?: number, liked?: boolean): State;
/** The viewer taps: the wish turns round at once. */
export declare function tap(s: State): State;
/** When the next command wants to be sent; undefined when none is needed. */
export declare function next(s: State): number | undefined;
/** The wish is sent. */
export declare function send(s: State): State;
/** The server answered a command: its count includes the viewer's like, or lack of it. */
export declare function answered(s: State, liked: boolean, count: number, now: number): State;
/**
 * The command did not get through, and may or may not have been applied. It is
 * repeated after `wait` when the server gave one, otherwise after a growing time
 * spread by `random` (0 to 1).
 */
export declare function failed(s: State, now: number, random: number, wait?: number): State;
/** The command was refused and will not be repeated: back to what is confirmed. */
export declare function refused(s: State, now: number): State;
/** The connection is back: a repetition need not wait longer, unless the server asked for it. */
export declare function hurried(s: State, now: number): State;
/**
 * A read answered, asked for when the state was `asked`. `liked` is missing when
 * the viewer is not known. What happened meanwhile is newer than the answer.
 */
export declare function loaded(s: State, asked: State, count: number, liked?: boolean): State;
/** A total arrived on the stream. */
export declare function counted(s: State, t: Total, now: number): State;
/** Shows a total that was held back, once that is safe. */
export declare function released(s: State, now: number): State;
/** What to show. */
export declare function view(s: State): View;
/** Reports whether version a is newer than b; "" is older than all. */
export declare function newer(a: string, b: string): boolean;

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
export const PACE = 250;
/** How long a total may lag behind the answer to a command. */
export const LAG = 3000;
const FIRST_RETRY = 500;
const LAST_RETRY = 30_000;

/** No command is on its way or has to be repeated. */
const settled = { sending: false, unsure: false, attempt: 0, told: false };

/** An item about which nothing is known, or only what the page was rendered with. */
export function initial(count?: number, liked = false): State {
  return {
    total: count,
    counted: liked,
    liked,
    wish: liked,
    ...settled,
    sent: 0,
    due: 0,
    version: "",
    held: undefined,
    holdUntil: 0,
  };
}

/** The viewer taps: the wish turns round at once. */
export function tap(s: State): State {
  return { ...s, wish: !s.wish };
}

/** When the next command wants to be sent; undefined when none is needed. */
export function next(s: State): number | undefined {
  return !s.sending && (s.unsure || s.wish !== s.liked) ? s.due : undefined;
}

/** The wish is sent. */
export function send(s: State): State {
  return { ...s, sending: true, sent: s.sent + 1 };
}

/** The server answered a command: its count includes the viewer's like, or lack of it. */
export function answered(s: State, liked: boolean, count: number, now: number): State {
  return released({ ...s, ...settled, total: count, counted: liked, liked, due: now + PACE, holdUntil: now + LAG }, now);
}

/**
 * The command did not get through, and may or may not have been applied. It is
 * repeated after `wait` when the server gave one, otherwise after a growing time
 * spread by `random` (0 to 1).
 */
export function failed(s: State, now: number, random: number, wait?: number): State {
  const backoff = Math.min(LAST_RETRY, FIRST_RETRY * 2 ** s.attempt) * (0.5 + random / 2);
  return released(
    { ...s, sending: false, unsure: true, attempt: s.attempt + 1, due: now + (wait ?? backoff), told: wait !== undefined },
    now,
  );
}

/** The command was refused and will not be repeated: back to what is confirmed. */
export function refused(s: State, now: number): State {
  return released({ ...s, ...settled, wish: s.liked, due: now + PACE }, now);
}

/** The connection is back: a repetition need not wait longer, unless the server asked for it. */
export function hurried(s: State, now: number): State {
  return s.attempt > 0 && !s.told && s.due > now ? { ...s, due: now } : s;
}

/**
 * A read answered, asked for when the state was `asked`. `liked` is missing when
 * the viewer is not known. What happened meanwhile is newer than the answer.
 */
export function loaded(s: State, asked: State, count: number, liked?: boolean): State {
  if (s.sending || s.sent !== asked.sent) return s;
  const own = liked ?? s.liked;
  const untouched = s.wish === s.liked && !s.unsure;
  return {
    ...s,
    total: s.version === asked.version ? count : s.total,
    counted: own,
    liked: own,
    wish: untouched ? own : s.wish,
  };
}

/** A total arrived on the stream. */
export function counted(s: State, t: Total, now: number): State {
  if (!newer(t.version, s.version)) return s;
  return released({ ...s, version: t.version, held: t }, now);
}

/** Shows a total that was held back, once that is safe. */
export function released(s: State, now: number): State {
  const { held } = s;
  if (!held || s.sending || (now < s.holdUntil && !agrees(s, held))) return s;
  return { ...s, total: held.count, counted: s.liked, held: undefined };
}

/** What to show. */
export function view(s: State): View {
  const count = s.total === undefined ? undefined : Math.max(0, s.total + +s.wish - +s.counted);
  return { liked: s.wish, count, pending: s.attempt > 0 };
}

/** Reports whether version a is newer than b; "" is older than all. */
export function newer(a: string, b: string): boolean {
  return a.length === b.length ? a > b : a.length > b.length;
}

/** A total that cannot be older than the last answer: it moved in the direction of the command, or not at all. */
function agrees(s: State, t: Total): boolean {
  const last = s.total ?? 0;
  return s.liked ? t.count >= last : t.count <= last;
}

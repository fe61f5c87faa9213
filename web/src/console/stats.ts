/**
 * The contract of `GET /console/api/stats`. Names end in their unit; `_total` is
 * counted since the process started. Fields that a server cannot know are 0 or [].
 */
export interface Stats {
  /** When the figures were taken, RFC 3339 with milliseconds. */
  time: string;
  /** Version of the program. */
  version: string;
  uptime_s: number;
  /** Likes in the store; -1 when it is not known. */
  likes_total: number;
  /** Likes and unlikes that were acknowledged, repeats included. */
  commands_total: number;
  /** Requests answered by 4xx. */
  refused_total: number;
  /** Synced commits of the ledger. */
  commits_total: number;
  /** Time from the request to the answer of a like or unlike, over the last 10 s; of a commit where none came over HTTP. Estimates. */
  write_p50_ms: number;
  write_p99_ms: number;
  /** Commands that wait for a commit, and the age of the oldest. */
  queue_length: number;
  queue_age_ms: number;
  /** Age of the oldest change that is not in the public counts yet. */
  lag_ms: number;
  /** Counts answered by the cache in the process, by the ledger, and from an old value because the ledger could not be read. */
  l1_hits_total: number;
  ledger_hits_total: number;
  stale_total: number;
  live_clients: { sse: number; ws: number };
  /** Frames sent to live clients, and clients or frames given up because they were too slow. */
  live_frames_total: number;
  live_dropped_total: number;
  /** Items whose total differed from the facts, and those that were corrected. */
  drift_found_total: number;
  drift_corrected_total: number;
  /** The items liked most often lately, at most 20, busiest first. */
  hot: HotItem[];
  /** The last audits, at most 20, newest first. */
  audits: Audit[];
  /** What readiness depends on. */
  ready: Check[];
  disk_free_bytes: number;
}

export interface HotItem {
  collection: string;
  id: string;
  likes_per_s: number;
  count: number;
}

export interface Audit {
  /** When it ended, RFC 3339. */
  time: string;
  items: number;
  drifted: number;
  repaired: number;
  duration_ms: number;
}

export interface Check {
  name: string;
  ok: boolean;
  /** "ok", or what is wrong. */
  detail: string;
}

/** `GET /console/api/items/{collection}/{id}`. */
export interface ItemFacts {
  total: number;
  /** Version of the total, a decimal integer. */
  version: string;
  /** The newest 20. */
  likers: { user: string; liked_at: string }[];
}

/** `GET /console/api/users/{user}`. */
export interface UserFacts {
  /** The newest 20. */
  likes: { collection: string; id: string; liked_at: string }[];
}

/** The counters of a `Stats`. */
export type Counter = { [K in keyof Stats]: K extends `${string}_total` ? K : never }[keyof Stats];

/** One look at the server: the figures, and what happened a second since the look before. */
export interface Sample {
  readonly stats: Stats;
  /** Change of a counter a second; undefined at the first look and after a restart. */
  rate(counter: Counter): number | undefined;
}

/** Compares two looks. */
export function sample(stats: Stats, before: Stats | undefined): Sample {
  const seconds = before ? (Date.parse(stats.time) - Date.parse(before.time)) / 1000 : 0;
  // Uptime may be rounded either way, so only a clear step back is a restart.
  const restarted = !before || stats.uptime_s + 1 < before.uptime_s || stats.commands_total < before.commands_total;
  return {
    stats,
    rate: (counter) => (restarted || seconds <= 0 ? undefined : Math.max(0, (stats[counter] - before[counter]) / seconds)),
  };
}

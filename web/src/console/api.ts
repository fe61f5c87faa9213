import type { ItemFacts, Stats, UserFacts } from "./stats.js";

/** What an audit of one item found. */
export interface AuditResult {
  collection: string;
  id: string;
  facts: number;
  total: number;
  unlisted: number;
  phantom: number;
  drift: boolean;
  repaired: boolean;
}

/** A refusal, or no answer at all (status 0). */
export class ConsoleError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

const place = "likewise.console.token";

/** The operator's token lives as long as the tab, and nowhere else. */
export const token = {
  get: () => sessionStorage.getItem(place) ?? "",
  set: (value: string) => sessionStorage.setItem(place, value),
  clear: () => sessionStorage.removeItem(place),
};

async function ask<T>(method: string, url: string): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(url, {
      method,
      headers: { Authorization: `Bearer ${token.get()}` },
      cache: "no-store",
      signal: AbortSignal.timeout(30_000),
    });
  } catch {
    throw new ConsoleError(0, "The server does not answer.");
  }
  const body = await answer.json().catch(() => undefined);
  if (answer.ok && body !== undefined) return body as T;
  throw new ConsoleError(answer.status, body?.detail ?? body?.title ?? `The server answered ${answer.status}.`);
}

const itemPath = (collection: string, id: string) => `${encodeURIComponent(collection)}/${encodeURIComponent(id)}`;

export const stats = () => ask<Stats>("GET", "/console/api/stats");
export const item = (collection: string, id: string) => ask<ItemFacts>("GET", `/console/api/items/${itemPath(collection, id)}`);
export const user = (name: string) => ask<UserFacts>("GET", `/console/api/users/${encodeURIComponent(name)}`);
export const audit = (collection: string, id: string, repair: boolean) =>
  ask<AuditResult>("POST", `/admin/v1/items/${itemPath(collection, id)}/audit?repair=${repair}`);
export const erase = (name: string) => ask<{ removed: number }>("POST", `/admin/v1/users/${encodeURIComponent(name)}/erase`);

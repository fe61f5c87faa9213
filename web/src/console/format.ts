const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

/** A number that is not known. */
export const unknown = "–";

/** A whole number with separators. */
export function count(n: number | undefined): string {
  return n === undefined || n < 0 ? unknown : whole.format(n);
}

/** At most three digits and a unit. */
export function short(n: number | undefined): string {
  if (n === undefined || n < 0) return unknown;
  return n < 10 && n % 1 !== 0 ? n.toFixed(1) : compact.format(n < 1000 ? Math.round(n) : n);
}

/** Milliseconds in the unit that reads best. */
export function duration(ms: number | undefined): string {
  if (ms === undefined) return unknown;
  if (ms === 0) return "0 ms";
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return span(ms / 1000);
}

/** Seconds as days, hours and minutes: the two largest that are not 0. */
export function span(seconds: number): string {
  const parts: [number, string][] = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [Math.floor(seconds) % 60, "s"],
  ];
  const first = Math.max(0, parts.findIndex(([n]) => n > 0));
  return (seconds < 1 ? [[0, "s"] as const] : parts.slice(first, first + 2)).map(([n, unit]) => `${n} ${unit}`).join(" ");
}

/** Bytes with a decimal unit. */
export function bytes(n: number | undefined): string {
  if (n === undefined || n <= 0) return unknown;
  const k = Math.min(4, Math.floor(Math.log10(n) / 3));
  return `${(n / 1000 ** k).toFixed(k > 2 ? 1 : 0)} ${["B", "kB", "MB", "GB", "TB"][k]}`;
}

/** A share in percent. */
export function percent(part: number | undefined, all: number | undefined): string {
  return !all || part === undefined ? unknown : `${((part / all) * 100).toFixed(part === all ? 0 : 1)} %`;
}

/** How long ago a time was. */
export function ago(time: string, now: number): string {
  const seconds = Math.max(0, (now - Date.parse(time)) / 1000);
  return seconds < 5 ? "just now" : `${span(seconds).split(" ").slice(0, 2).join(" ")} ago`;
}

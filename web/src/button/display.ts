/**
 * The short form of a count, as the server writes it: the integer below 1,000,
 * else one decimal with a unit, rounded half up and without a trailing ".0".
 */
export function short(count: number): string {
  if (count < 1000) return String(Math.max(count, 0));
  let size = 1000;
  for (const unit of "KMBT") {
    const tenths = Math.floor((count + size / 20) / (size / 10));
    if (tenths < 10_000 || unit === "T") return tenths / 10 + unit;
    size *= 1000;
  }
  return "";
}

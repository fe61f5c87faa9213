import { describe, expect, it } from "vitest";
import * as format from "../src/console/format.js";
import { sample, type Stats } from "../src/console/stats.js";

const stats = (over: Partial<Stats>): Stats => ({
  time: "2026-01-01T00:00:00.000Z", version: "1", uptime_s: 100, likes_total: 0, commands_total: 0, refused_total: 0, commits_total: 0,
  write_p50_ms: 0, write_p99_ms: 0, queue_length: 0, queue_age_ms: 0, lag_ms: 0, l1_hits_total: 0, ledger_hits_total: 0, stale_total: 0,
  live_clients: { sse: 0, ws: 0 }, live_frames_total: 0, live_dropped_total: 0, drift_found_total: 0, drift_corrected_total: 0,
  hot: [], audits: [], ready: [], disk_free_bytes: 0, ...over,
});

describe("rates", () => {
  const before = stats({ commands_total: 1000, commits_total: 10 });

  it("are changes a second, by the server's clock", () => {
    const s = sample(stats({ time: "2026-01-01T00:00:02.000Z", uptime_s: 102, commands_total: 1500, commits_total: 10 }), before);
    expect(s.rate("commands_total")).toBe(250);
    expect(s.rate("commits_total")).toBe(0);
  });

  it("are unknown at first, after a restart and within one instant", () => {
    expect(sample(before, undefined).rate("commands_total")).toBeUndefined();
    const later = "2026-01-01T00:00:05.000Z";
    expect(sample(stats({ time: later, uptime_s: 1, commands_total: 2000 }), before).rate("commands_total")).toBeUndefined();
    expect(sample(stats({ time: later, uptime_s: 105, commands_total: 3 }), before).rate("commands_total")).toBeUndefined();
    expect(sample(before, before).rate("commands_total")).toBeUndefined();
  });
});

describe("numbers", () => {
  it.each([
    [format.count(1234567), "1,234,567"], [format.count(-1), "–"], [format.count(undefined), "–"],
    [format.short(1234567), "1.23M"], [format.short(2.345), "2.3"], [format.short(999.6), "1K"], [format.short(7), "7"],
    [format.duration(0), "0 ms"], [format.duration(1.26), "1.3 ms"], [format.duration(420.4), "420 ms"], [format.duration(2500), "2.5 s"], [format.duration(90_000), "1 min 30 s"],
    [format.span(0), "0 s"], [format.span(59), "59 s"], [format.span(3600), "1 h 0 min"], [format.span(93_784), "1 d 2 h"],
    [format.bytes(182_400_000_000), "182.4 GB"], [format.bytes(2048), "2 kB"], [format.bytes(0), "–"],
    [format.percent(1, 3), "33.3 %"], [format.percent(5, 5), "100 %"], [format.percent(0, 0), "–"],
    [format.ago("2026-01-01T00:00:00Z", Date.parse("2026-01-01T00:00:03Z")), "just now"],
    [format.ago("2026-01-01T00:00:00Z", Date.parse("2026-01-01T02:10:00Z")), "2 h ago"],
  ])("%s", (got, want) => expect(got).toBe(want));
});

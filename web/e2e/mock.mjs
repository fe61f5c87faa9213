// A stand-in for the server while the pages are developed: `npm run dev`, then open
// http://127.0.0.1:8099/ (demo), /console/ and /states. It keeps nothing and promises
// nothing. Faults are switched on at /mock?fault=NAME: none, down, slow, limited,
// denied, cut, empty.
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const types = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml" };
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'";

const posts = [
  ["The cat that learned to open the fridge", "We changed the lock. She changed her approach. It took her nine minutes, and there is footage.", "The Fridge Desk", "🐈"],
  ["Aurora over the harbour last night", "Forty seconds of exposure, one thermos of tea, no regrets.", "Harbour Lights", "🌌"],
  ["I finally beat the last level", "After 214 tries. My neighbours know.", "Level 99", "🎮"],
  ["Sourdough, week nine", "It rose. It actually rose.", "Flour and Water", "🍞"],
  ["Our tiny bookshop turned ten", "Thank you for every rainy afternoon you spent between the shelves.", "The Tiny Bookshop", "📚"],
  ["Sunrise run: 21 km before breakfast", "The fog was worth the alarm clock.", "Early Miles", "🏃"],
  ["Repaired a radio from 1954", "One capacitor, two evenings, and suddenly: jazz.", "Old Radios", "📻"],
  ["First tomatoes of the year", "Three of them. They have names.", "Balcony Garden", "🍅"],
  ["A train journey without wifi", "Recommended. I counted herons.", "Slow Trains", "🚆"],
  ["My daughter’s drawing of our dog", "He has six legs because he is fast.", "Kitchen Gallery", "🐕"],
  ["Snow in April, again", "The tulips are not amused.", "Weather Notes", "🌷"],
  ["Chess in the park, every Thursday", "All levels. Bring a jumper.", "Park Chess", "♟️"],
].map(([title, text, author, emoji], i) => ({ collection: "posts", id: String(i + 1), title, text, author, emoji }));

const items = new Map();
const likes = new Set();
const item = (collection, id) => {
  const key = `${collection}/${id}`;
  if (!items.has(key)) items.set(key, { collection, id, count: 0, version: 1n });
  return items.get(key);
};
posts.forEach((post, i) => (item("posts", post.id).count = Math.round(1_284_000 / (i + 1) ** 2.1)));
const sum = () => [...items.values()].reduce((n, it) => n + it.count, 0);

let fault = new URLSearchParams(process.argv[2] ?? "").get("fault") ?? "none";
let rate = 240;
let taps = 0;
const viewers = new Set();
const began = Date.now();
const body = (request) => new Promise((done) => {
  let text = "";
  request.on("data", (chunk) => (text += chunk)).on("end", () => done(text ? JSON.parse(text) : undefined));
});

function bump(it, by) {
  it.count += by;
  it.version++;
}

setInterval(() => {
  const n = Math.round(rate / 10);
  taps += n;
  for (let k = 0; k < n; k++) bump(item("posts", posts[Math.min(posts.length - 1, Math.floor(posts.length * Math.random() ** 4))].id), 1);
}, 100);

const entry = (it) => ({ collection: it.collection, id: it.id, count: it.count, display: String(it.count), version: String(it.version) });
setInterval(() => {
  for (const viewer of viewers) {
    const changed = viewer.items.filter((it) => viewer.seen.get(it) !== it.version);
    for (const it of changed) viewer.seen.set(it, it.version);
    if (changed.length) viewer.response.write(`event: counts\nid: ${Date.now()}\ndata: ${JSON.stringify({ counts: changed.map(entry) })}\n\n`);
  }
}, 1000);

function problem(response, status, code, detail, headers = {}) {
  response.writeHead(status, { "Content-Type": "application/problem+json", ...headers });
  response.end(JSON.stringify({ type: `urn:likewise:problem:${code}`, title: code, status, code, detail, request_id: "mock" }));
}

function json(response, value, status = 200) {
  response.writeHead(status, { "Content-Type": "application/json", "Cache-Control": "no-store" });
  response.end(JSON.stringify(value));
}

function named(query) {
  return [...query].flatMap(([collection, ids]) => ids.split(",").map((id) => item(collection, id)));
}

const token = (sub) => `e30.${Buffer.from(JSON.stringify({ sub, exp: Math.floor(Date.now() / 1000) + 3600 })).toString("base64url")}.mock`;

function stats() {
  const up = (Date.now() - began) / 1000;
  const wave = (period, depth) => 1 + depth * Math.sin(up / period) + depth * 0.6 * (Math.random() - 0.5);
  const empty = fault === "empty";
  return {
    time: new Date().toISOString(), version: "0.1.0 (mock)", uptime_s: 93_784 + Math.round(up),
    likes_total: empty ? 0 : sum(), commands_total: empty ? 0 : taps, refused_total: empty ? 0 : Math.round(taps * 0.012), commits_total: empty ? 0 : Math.round(up * 46),
    write_p50_ms: empty ? 0 : 1.4 * wave(7, 0.1), write_p99_ms: empty ? 0 : 6.2 * wave(5, 0.3), queue_length: empty ? 0 : Math.round(12 * wave(3, 0.5)), queue_age_ms: empty ? 0 : 2.1 * wave(4, 0.4),
    lag_ms: empty ? 0 : 420 * wave(6, 0.35), l1_hits_total: empty ? 0 : Math.round(up * 5200 + 9000 * Math.sin(up / 6)), ledger_hits_total: empty ? 0 : Math.round(up * 210), stale_total: 0,
    live_clients: empty ? { sse: 0, ws: 0 } : { sse: 1180 + Math.round(60 * wave(9, 0.5)), ws: 212 }, live_frames_total: empty ? 0 : Math.round(up * 1900), live_dropped_total: 0,
    drift_found_total: 0, drift_corrected_total: 0,
    hot: empty ? [] : [...items.values()].filter((it) => it.collection === "posts").sort((a, b) => b.count - a.count).slice(0, 20).map((it, i) => ({ collection: it.collection, id: it.id, likes_per_s: (rate * 0.5) / (i + 1) ** 1.4, count: it.count })),
    audits: empty ? [] : [1, 3, 6, 12].map((h) => ({ time: new Date(Date.now() - h * 3_600_000).toISOString(), items: 10_000 - h, drifted: 0, repaired: 0, duration_ms: 1800 + h * 30 })),
    ready: [{ name: "ledger", ok: true, detail: "ok" }, { name: "disk", ok: true, detail: "ok" }, { name: "live", ok: true, detail: "ok" }],
    disk_free_bytes: 182_400_000_000,
  };
}

async function api(request, response, url) {
  const path = url.pathname;
  const parts = path.split("/").slice(2).map(decodeURIComponent);
  const who = request.headers.authorization ? JSON.parse(Buffer.from(request.headers.authorization.split(".")[1] ?? "", "base64url").toString() || "{}").sub : undefined;
  const counted = (it) => ({ collection: it.collection, id: it.id, count: it.count, display: String(it.count), ...(who ? { liked_by_me: likes.has(`${it.collection}/${it.id}/${who}`) } : {}) });
  if (path === "/v1/likes/stream") {
    const viewer = { response, items: named(url.searchParams), seen: new Map() };
    response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    for (const it of viewer.items) viewer.seen.set(it, it.version);
    response.write(`retry: 1000\n\nevent: counts\ndata: ${JSON.stringify({ counts: viewer.items.map(entry) })}\n\n`);
    viewers.add(viewer);
    request.on("close", () => viewers.delete(viewer));
    return;
  }
  if (path === "/v1/likes/counts") {
    const asked = request.method === "POST" ? (await body(request)).items.map((it) => item(it.collection, it.id)) : named(url.searchParams);
    return json(response, { counts: asked.map(counted) });
  }
  if (parts.length === 3 && parts[2] === "like") {
    if (fault === "limited") return problem(response, 429, "rate_limited", "5 likes a second", { "Retry-After": "3" });
    if (fault === "down") return problem(response, 503, "unavailable", "later", { "Retry-After": "2" });
    if (fault === "cut") return response.destroy();
    if (fault === "slow") await new Promise((done) => setTimeout(done, 4000));
    if (fault === "denied" || !who) return problem(response, 401, "missing_token", "a token is needed");
    const it = item(parts[0], parts[1]);
    const key = `${parts[0]}/${parts[1]}/${who}`;
    const wanted = request.method === "PUT";
    if (request.method !== "GET" && likes.has(key) !== wanted) {
      wanted ? likes.add(key) : likes.delete(key);
      bump(it, wanted ? 1 : -1);
      taps++;
    }
    return json(response, { liked: likes.has(key), count: it.count });
  }
  problem(response, 404, "not_found", "no such path");
}

async function operator(request, response, url) {
  if (!request.headers.authorization?.startsWith("Bearer e")) return problem(response, 401, "invalid_token", "not accepted");
  if (fault === "down") return problem(response, 503, "unavailable", "The store is shutting down.");
  const parts = url.pathname.split("/").slice(1).map(decodeURIComponent);
  if (url.pathname === "/console/api/stats") return json(response, stats());
  const people = ["ada", "grace", "linus", "margaret", "ken", "barbara"];
  const when = (i) => new Date(Date.now() - i * 73_000).toISOString();
  if (parts[0] === "console" && parts[2] === "items") return json(response, { total: item(parts[3], parts[4]).count, version: String(item(parts[3], parts[4]).version), likers: people.map((user, i) => ({ user, liked_at: when(i) })) });
  if (parts[2] === "users") return json(response, { likes: people.includes(parts[3]) ? posts.slice(0, 5).map((post, i) => ({ collection: "posts", id: post.id, liked_at: when(i) })) : [] });
  if (parts.at(-1) === "audit") {
    const { count } = item(parts[3], parts[4]);
    const drift = parts[4] === "7";
    return json(response, { collection: parts[3], id: parts[4], facts: count, total: drift ? count + 2 : count, unlisted: 0, phantom: 0, drift, repaired: drift && url.searchParams.get("repair") === "true" });
  }
  if (parts.at(-1) === "erase") return json(response, { removed: 5 });
  problem(response, 404, "not_found", "no such path");
}

const states = `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>states</title>
<link rel="stylesheet" href="/states.css"><script type="module" src="/button.js"></script>
<h1>States</h1><p id="row">${["1", "3", "5", "9"].map((id) => `<like-button collection="posts" item="${id}" token-url="/demo/token"></like-button>`).join(" ")}
<like-button collection="posts" item="2" token-url="/demo/token" format="exact"></like-button>
<like-button collection="posts" item="4" disabled></like-button><like-button></like-button></p>`;
const statesStyle = ":root{color-scheme:light dark}body{font:600 1rem Inter,system-ui,sans-serif;margin:2rem;min-height:10rem}like-button{margin:0 .25rem 4rem}";

async function page(response, path) {
  if (path === "/states") return response.writeHead(200, { "Content-Type": types[".html"], "Content-Security-Policy": policy }).end(states);
  if (path === "/states.css") return response.writeHead(200, { "Content-Type": types[".css"] }).end(statesStyle);
  const file = path.startsWith("/console/") ? `console/${path.slice(9) || "index.html"}` : path.startsWith("/button") || path === "/client.js" ? `button${path}` : `demo${path === "/" ? "/index.html" : path}`;
  try {
    const content = await readFile(`${root}/dist/${file}`);
    response.writeHead(200, { "Content-Type": types[extname(file)] ?? "application/octet-stream", "Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff" });
    response.end(content);
  } catch {
    problem(response, 404, "not_found", path);
  }
}

const server = createServer(async (request, response) => {
  const url = new URL(request.url, "http://mock");
  const path = url.pathname;
  if (path === "/mock") return json(response, { fault: (fault = url.searchParams.get("fault") ?? fault) });
  if (path === "/demo/feed") return fault === "empty" ? problem(response, 503, "unavailable", "later") : json(response, { posts });
  if (path === "/demo/token") return json(response, { token: token("visitor-7f3a"), user: "visitor-7f3a" });
  if (path === "/demo/crowd") {
    if (request.method === "POST") ({ rate } = await body(request));
    return json(response, { rate, max: 5000, likes_total: sum() });
  }
  if (path.startsWith("/v1/")) return api(request, response, url);
  if (path.startsWith("/console/api/") || path.startsWith("/admin/v1/")) return operator(request, response, url);
  return page(response, path);
});
server.listen(Number(process.env.PORT ?? 8099), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/`));

// What the end-to-end tests need: the real program, a page of another origin that
// uses the button by its one tag, and a browser.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { createServer as createSocket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

const program = process.env.LIKEWISE;
if (!program) throw new Error("LIKEWISE names no program; web/e2e/run builds one");
const exec = promisify(execFile);

/** A port below those of outgoing connections, which take any while its server is down, and below those of the Go tests. */
async function freePort() {
  for (;;) {
    const port = 10_000 + Math.floor(5000 * Math.random());
    const socket = createSocket().listen(port, "127.0.0.1");
    const free = await once(socket, "listening").then(() => true, () => false);
    if (!free) continue;
    socket.close();
    await once(socket, "close");
    return port;
  }
}

/** A running server or demo. */
export class Program {
  static async start(command, settings = {}) {
    const p = new Program();
    p.command = command;
    p.dir = await mkdtemp(join(tmpdir(), "likewise-e2e-"));
    p.url = `http://127.0.0.1:${await freePort()}`;
    p.admin = `http://127.0.0.1:${await freePort()}`;
    p.settings = settings;
    await p.launch();
    return p;
  }

  async launch() {
    const env = {
      ...process.env,
      TMPDIR: this.dir,
      LIKEWISE_LISTEN: new URL(this.url).host,
      LIKEWISE_ADMIN_LISTEN: new URL(this.admin).host,
      LIKEWISE_DATA_DIR: join(this.dir, "data"),
      ...this.settings,
    };
    this.output = "";
    this.process = spawn(program, [this.command], { env, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.process.stdout, this.process.stderr]) stream.on("data", (text) => (this.output += text));
    this.ended = once(this.process, "exit");
    for (const deadline = Date.now() + 60_000; Date.now() < deadline; ) {
      if (this.process.exitCode !== null) break;
      const ready = await fetch(`${this.admin}/readyz`).then((answer) => answer.ok, () => false);
      if (ready) return;
      await sleep(50);
    }
    throw new Error(`the program is not ready:\n${this.output}`);
  }

  /** The data directory; a demo says where it is. */
  get data() {
    return /--data-dir (\S+)/.exec(this.output)?.[1] ?? join(this.dir, "data");
  }

  async token(user, scope = "") {
    const { stdout } = await exec(program, ["token", user, "--data-dir", this.data, "--scope", scope]);
    return stdout.trim();
  }

  /** What the server knows of an item. */
  async ask(user, item) {
    const answer = await fetch(`${this.url}/v1/${item}/like`, { headers: { Authorization: `Bearer ${await this.token(user)}` } });
    return answer.json();
  }

  async kill() {
    this.process.kill("SIGKILL");
    await this.ended;
  }

  async stop() {
    this.process.kill("SIGINT");
    await this.ended;
    await rm(this.dir, { recursive: true, force: true });
  }
}

/** A page of another origin: /?user=ada&items=1,2 has a button for each post. */
export class Site {
  static async start() {
    const site = new Site();
    site.server = createServer((request, response) => site.#answer(request, response)).listen(0, "127.0.0.1");
    await once(site.server, "listening");
    site.url = `http://127.0.0.1:${site.server.address().port}`;
    return site;
  }

  async #answer(request, response) {
    const url = new URL(request.url, this.url);
    const user = url.searchParams.get("user") ?? "";
    if (url.pathname === "/token") {
      const token = await this.program.token(user);
      return response.setHeader("Content-Type", "application/json").end(JSON.stringify({ token }));
    }
    const buttons = (url.searchParams.get("items") ?? "").split(",").map((id) => `<like-button collection="posts" item="${id}" token-url="/token?user=${user}"></like-button>`);
    response.setHeader("Content-Type", "text/html; charset=utf-8").end(
      `<!doctype html><html lang="en"><title>A page</title><script type="module" src="${this.program.url}/button.js"></script><main><h1>A page</h1>${buttons.join("")}</main></html>`,
    );
  }

  async stop() {
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, "close");
  }
}

export function openBrowser() {
  return chromium.launch({
    timeout: 120_000,
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

/** Opens a page in a context of its own, or in a given one. Script errors and broken policies count as failures. */
export async function visit(browser, url, { context, ...options } = {}) {
  context ??= await browser.newContext(options);
  const page = await context.newPage();
  page.troubles = [];
  page.on("pageerror", (error) => page.troubles.push(String(error)));
  page.on("console", (message) => {
    // The browser itself reports requests that fail, which some tests provoke.
    if (message.type() === "error" && !/Failed to load resource|ERR_/.test(message.text())) page.troubles.push(message.text());
  });
  await page.goto(url);
  return page;
}

/** The state of the n-th button of a page. */
export function stateOf(page, n = 0) {
  return page.locator("like-button").nth(n).evaluate(({ liked, count, pending, shadowRoot }) => ({
    liked,
    count,
    pending,
    pressed: shadowRoot?.querySelector("button").ariaPressed, // without a shadow the script is still on its way
    name: shadowRoot?.querySelector("button").ariaLabel,
    message: shadowRoot?.querySelector("[part=message]").textContent,
  }));
}

/** Waits until a button's state has the given values. */
export async function until(page, want, { n = 0, within = 60_000 } = {}) {
  const deadline = Date.now() + within;
  let last;
  while (Date.now() < deadline) {
    last = await stateOf(page, n);
    if (Object.entries(want).every(([key, value]) => (value instanceof RegExp ? value.test(last[key]) : last[key] === value))) return last;
    await sleep(20);
  }
  throw new Error(`after ${within} ms the button is ${JSON.stringify(last)}, not ${JSON.stringify(want)}`);
}

// Makes the pictures of the README from a demo that has run for two minutes:
// `e2e/run pictures`. Needs cwebp, and a machine whose disk has nothing else to do.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { openBrowser, Program, visit } from "./world.mjs";

const out = fileURLToPath(new URL("../../docs/images/", import.meta.url));
const steps = 24; // of five seconds each
const scratch = mkdtempSync(join(tmpdir(), "likewise-pictures-"));
mkdirSync(out, { recursive: true });

const demo = await Program.start("demo");
const operator = { Authorization: `Bearer ${await demo.token("operator", "likes:admin")}` };
const browser = await openBrowser();
let over = false;

/** Somebody who looks, and now and then taps. */
async function viewer() {
  const { token } = await fetch(`${demo.url}/demo/token`).then((answer) => answer.json());
  const headers = { Authorization: `Bearer ${token}` };
  const stream = new AbortController();
  fetch(`${demo.url}/v1/likes/stream?posts=1,2,3,4,5`, { headers, signal: stream.signal })
    .then(async ({ body }) => { for await (const _ of body); })
    .catch(() => undefined);
  while (!over) {
    await sleep(400 + 800 * Math.random());
    const id = 1 + Math.floor(12 * Math.random() ** 2);
    await fetch(`${demo.url}/v1/posts/${id}/like`, { method: Math.random() < 0.8 ? "PUT" : "DELETE", headers }).then((answer) => answer.text());
    await fetch(`${demo.url}/v1/likes/counts?posts=1,2,3,4,5,6,7,8,9,${10 + Math.floor(90 * Math.random())}`, { headers }).then((answer) => answer.text());
  }
  stream.abort();
}

async function picture(page, name) {
  const file = join(scratch, `${name}.png`);
  await page.screenshot({ path: file });
  execFileSync("cwebp", ["-quiet", "-q", "82", file, "-o", join(out, `${name}.webp`)]);
  await page.context().close();
}

const audit = () => fetch(`${demo.admin}/admin/v1/reconcile`, { method: "POST", headers: operator }).then((answer) => answer.text());
const viewers = Array.from({ length: 24 }, viewer);
await audit();
const consoles = [];
for (const colorScheme of ["light", "dark"]) {
  const page = await visit(browser, `${demo.admin}/console/`, { colorScheme, viewport: { width: 1280, height: 930 } });
  await page.getByLabel("Token").fill(operator.Authorization.slice("Bearer ".length));
  await page.keyboard.press("Enter");
  consoles.push([page, `console-${colorScheme}`]);
}
for (let i = 0; i < steps; i++) {
  await fetch(`${demo.url}/demo/crowd`, { method: "POST", body: JSON.stringify({ rate: Math.round(500 + 300 * Math.sin(i / 4)) }) });
  await sleep(5000);
}
for (const [page, name] of consoles) {
  await page.bringToFront();
  await sleep(1500);
  await picture(page, name);
}
over = true;
await Promise.all(viewers);
for (const colorScheme of ["light", "dark"]) {
  // With less motion the digits do not roll, so that none is caught half way.
  const page = await visit(browser, demo.url, { colorScheme, reducedMotion: "reduce", viewport: { width: 1280, height: 740 } });
  await sleep(2500);
  await page.locator("like-button").first().getByRole("button").click();
  await page.mouse.move(5, 5);
  await sleep(2000);
  await page.evaluate(() => scrollTo(0, 0));
  await picture(page, `demo-${colorScheme}`);
}
await browser.close();
await demo.stop();
rmSync(scratch, { recursive: true });

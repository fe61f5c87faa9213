// The page of the demo and the console, as a person sees them.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { openBrowser, Program, stateOf, until, visit } from "./world.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const shots = process.env.SHOTS ?? fileURLToPath(new URL("shots/", import.meta.url));
const looks = {
  light: { colorScheme: "light", viewport: { width: 1280, height: 860 } },
  dark: { colorScheme: "dark", viewport: { width: 1280, height: 860 } },
  phone: { colorScheme: "light", viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true },
};
let demo, browser, operator;

before(async () => {
  mkdirSync(shots, { recursive: true });
  demo = await Program.start("demo");
  operator = await demo.token("operator", "likes:admin");
  browser = await openBrowser();
});
after(async () => {
  await browser?.close();
  await demo?.stop();
});

/** What axe finds serious. The policy of the pages allows no script from elsewhere, so axe comes in past it. */
async function check(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  assert.deepEqual(serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`), []);
}

async function signIn(page) {
  await page.getByLabel("Token").fill(operator);
  await page.keyboard.press("Enter");
  await page.locator("body[data-mode=live]").waitFor();
}

for (const [look, options] of Object.entries(looks)) {
  test(`demo, ${look}`, async () => {
    const page = await visit(browser, demo.url, options);
    await page.locator("like-button").nth(11).waitFor();
    const first = await until(page, { count: /^[1-9]/ });
    await page.waitForFunction((count) => document.querySelector("like-button").count > count, first.count); // it ticks
    await page.locator("like-button").nth(1).getByRole("button").click();
    await until(page, { liked: true, pending: false }, { n: 1 });
    await page.waitForFunction(() => /^[1-9]/.test(document.getElementById("speed").textContent));
    await page.evaluate(() => scrollTo(0, 0));
    await page.waitForTimeout(800); // the tap and the digits come to rest
    await page.screenshot({ path: join(shots, `demo-${look}.png`) });
    assert.match(await page.locator("aside.notice").innerText(), /This is a demo/);
    await check(page);
    assert.deepEqual(page.troubles, []);
    await page.context().close();
  });

  test(`console, ${look}`, async () => {
    const viewer = await visit(browser, demo.url);
    const page = await visit(browser, `${demo.admin}/console/`, options);
    await check(page);
    await signIn(page);
    await page.waitForFunction(() => document.querySelectorAll("#hot tr").length >= 10);
    await page.waitForFunction(() => document.querySelectorAll(".plot canvas").length >= 6);
    await page.waitForTimeout(4000); // the charts need something to draw
    await page.screenshot({ path: join(shots, `console-${look}.png`) });
    await check(page);
    for (const p of [page, viewer]) {
      assert.deepEqual(p.troubles, []);
      await p.context().close();
    }
  });
}

test("a visitor stays the same, and another browser is another visitor", async () => {
  const page = await visit(browser, demo.url);
  const name = page.locator("#visitor b");
  await name.waitFor();
  const visitor = await name.innerText();
  await until(page, { count: /^[1-9]/ }, { n: 4 });
  const answered = page.waitForResponse((response) => response.request().method() === "PUT");
  await page.locator("like-button").nth(4).getByRole("button").click();
  await until(page, { liked: true, pending: false }, { n: 4 });
  assert.ok((await answered).ok());
  const { user } = await page.evaluate(() => fetch("/demo/token").then((answer) => answer.json()));
  assert.equal(user, visitor);
  await page.reload();
  await until(page, { liked: true }, { n: 4 });
  assert.equal(await name.innerText(), visitor);
  const other = await visit(browser, demo.url);
  await until(other, { count: /^[1-9]/ }, { n: 4 });
  assert.notEqual(await other.locator("#visitor b").innerText(), visitor);
  assert.equal((await stateOf(other, 4)).liked, false);
  for (const p of [page, other]) await p.context().close();
});

test("the crowd does what the slider says", async () => {
  const page = await visit(browser, demo.url);
  const slider = page.locator("#rate:enabled");
  const rate = () => fetch(`${demo.url}/demo/crowd`).then((answer) => answer.json());
  await slider.focus();
  await page.keyboard.press("Home");
  await page.waitForFunction(() => document.getElementById("rate-text").textContent === "paused");
  while ((await rate()).rate !== 0);
  await page.keyboard.press("End");
  while ((await rate()).rate !== (await rate()).max);
  let more = 0; // others use the machine too, so that one good second is enough
  for (let second = 0; second < 20 && more <= 500; second++) {
    const { likes_total: before } = await rate();
    await page.waitForTimeout(1000);
    more = (await rate()).likes_total - before;
  }
  assert.ok(more > 500, `${more} likes in a second`);
  await fetch(`${demo.url}/demo/crowd`, { method: "POST", body: '{"rate":200}' });
  await page.context().close();
});

test("the console recounts, looks up, and says when the server is gone", async () => {
  const page = await visit(browser, `${demo.admin}/console/`);
  await page.getByLabel("Token").fill("nonsense");
  await page.keyboard.press("Enter");
  await page.locator("#refusal:visible").waitFor();
  await signIn(page);
  await page.getByRole("button", { name: "Recount posts/1", exact: true }).click();
  await page.locator("#hot .result.good").first().waitFor();
  assert.match(await page.locator("#hot .result.good").first().innerText(), /^Exact: /);
  await page.locator("#item-id").fill("2");
  await page.keyboard.press("Enter");
  await page.locator("#item-result li").nth(19).waitFor();
  await page.locator("#item-result li button").first().click(); // its newest liker
  await page.locator("#user-result .found").waitFor();
  assert.match(await page.locator("#user-result .found").innerText(), /crowd-|visitor-/);
  await demo.kill();
  await page.locator("#lost:visible").waitFor();
  assert.match(await page.locator("#lost").innerText(), /does not answer[^]*old/);
  await demo.launch(); // another store with another key
  await page.locator("#refusal:visible").waitFor();
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});

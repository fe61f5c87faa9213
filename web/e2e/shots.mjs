// Pictures of everything a person sees, in light, dark and on a phone, into e2e/shots.
// It needs a running server: `npm run dev`, or a real one named by SHOTS_URL.
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const base = process.env.SHOTS_URL ?? "http://127.0.0.1:8099";
const out = fileURLToPath(new URL("shots/", import.meta.url));
const only = process.argv[2];
mkdirSync(out, { recursive: true });

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
const looks = {
  light: { colorScheme: "light", viewport: { width: 1280, height: 860 } },
  dark: { colorScheme: "dark", viewport: { width: 1280, height: 860 } },
  phone: { colorScheme: "light", viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true },
  "phone-dark": { colorScheme: "dark", viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true },
};
const fault = (name) => fetch(`${base}/mock?fault=${name}`);
const troubles = [];

async function visit(look, path, before) {
  const context = await browser.newContext(looks[look]);
  const page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && !message.text().startsWith("Failed to load resource") && troubles.push(`${look} ${path}: ${message.text()}`));
  page.on("pageerror", (error) => troubles.push(`${look} ${path}: ${error}`));
  if (before) await page.addInitScript(before);
  await page.goto(base + path);
  return page;
}

async function shoot(page, name, options = {}) {
  await page.screenshot({ path: `${out}${name}.png`, ...options });
}

const scenes = {
  async demo(look) {
    const page = await visit(look, "/");
    await page.waitForTimeout(2600);
    for (const n of [0, 2]) if (!(await page.locator("like-button").nth(n).evaluate((b) => b.liked))) await page.locator("like-button").nth(n).click();
    await page.evaluate(() => scrollTo(0, 0));
    await page.mouse.move(5, 5);
    await page.waitForTimeout(900);
    await shoot(page, `demo-${look}`);
    await shoot(page, `demo-${look}-full`, { fullPage: true });
    await page.context().close();
  },
  async trouble(look) {
    await fault("empty");
    const page = await visit(look, "/");
    await page.waitForTimeout(1200);
    await shoot(page, `demo-trouble-${look}`);
    await page.context().close();
    await fault("none");
  },
  async console(look) {
    const signedOut = await visit(look, "/console/");
    await signedOut.waitForTimeout(400);
    await shoot(signedOut, `console-sign-in-${look}`);
    await signedOut.locator("#token").fill("wrong");
    await signedOut.locator("#token").press("Enter");
    await signedOut.waitForTimeout(400);
    await shoot(signedOut, `console-refused-${look}`);
    await signedOut.context().close();
    const page = await visit(look, "/console/", () => sessionStorage.setItem("likewise.console.token", "e30.e30.x"));
    await page.waitForTimeout(14000);
    await shoot(page, `console-${look}`);
    await page.locator("#hot button.button").nth(0).click();
    await page.locator("#hot button.button").nth(6).click();
    await page.locator("#item-id").fill("1");
    await page.locator("#item-id").press("Enter");
    await page.locator("#user-name").fill("ada");
    await page.locator("#user-name").press("Enter");
    await page.waitForTimeout(800);
    await page.evaluate(() => scrollTo(0, 0));
    await shoot(page, `console-${look}-full`, { fullPage: true });
    await page.locator("#user-result .danger").click();
    await page.waitForTimeout(300);
    await shoot(page, `console-erase-${look}`);
    await page.keyboard.press("Escape");
    await fault("down");
    await page.waitForTimeout(2500);
    await page.evaluate(() => scrollTo(0, 0));
    await shoot(page, `console-lost-${look}`);
    await fault("empty");
    await page.waitForTimeout(4500);
    await shoot(page, `console-empty-${look}`, { fullPage: true });
    await fault("none");
    await page.context().close();
  },
  async states(look) {
    const page = await visit(look, "/states");
    const clip = { x: 0, y: 0, width: looks[look].viewport.width, height: 260 };
    await page.waitForTimeout(1500);
    await shoot(page, `states-${look}-1-idle`, { clip });
    const button = page.locator("like-button");
    await button.nth(0).click();
    await page.waitForTimeout(120);
    await shoot(page, `states-${look}-2-tapped`, { clip });
    await page.waitForTimeout(700);
    await shoot(page, `states-${look}-3-liked`, { clip });
    for (const [i, name] of ["down", "limited", "denied"].entries()) {
      await fault(name);
      await button.nth(i + 1).click();
      await page.waitForTimeout(500);
      await shoot(page, `states-${look}-${4 + i}-${name}`, { clip });
    }
    await fault("none");
    await page.waitForTimeout(4000);
    await page.keyboard.press("Tab");
    await shoot(page, `states-${look}-7-settled`, { clip });
    await page.context().close();
  },
};

for (const [name, scene] of Object.entries(scenes)) {
  if (only && !only.split(",").includes(name)) continue;
  for (const look of Object.keys(looks)) await scene(look);
}
await browser.close();
console.log(troubles.length ? troubles.join("\n") : "no errors in the browser's console");

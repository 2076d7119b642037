// A browser and its pages, which complain about whatever lands on the console.
import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";

const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
/** Pictures are always made, by all files of a run in one folder; where it is is said at the end. */
const SHOTS = process.env.POLYCLAW_SHOTS ?? path.join(os.tmpdir(), `polyclaw-shots-${process.ppid}`);
let made = 0;
process.once("exit", () => { if (made) console.log(`${made} pictures of ${path.basename(process.argv[1])} are in ${SHOTS}`); });
/** Somebody is away; or was stopped between being seen to run and being asked. */
export const UNREACHABLE = /ERR_CONNECTION_(REFUSED|RESET)|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED_ENCODING|WebSocket connection|status of 502|status of (409|503|504)[^\n]*\/gateway\//;

export const DESKTOP = { viewport: { width: 1440, height: 900 } };
export const PHONE = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true };

/** Every size in every theme. */
export const LOOKS = Object.fromEntries(Object.entries({ desktop: DESKTOP, phone: PHONE }).flatMap(([size, options]) =>
  ["light", "dark"].map((colorScheme) => [`${size}-${colorScheme}`, { ...options, colorScheme }])));

export const launch = (...more) => chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: [...FLAGS, ...more] });

/** A visitor with a page of their own. */
export class Visit {
  static async of(browser, address, options = {}) {
    const visit = new Visit();
    visit.faults = [];
    visit.expected = null;
    visit.context = await browser.newContext({ ...DESKTOP, locale: "en-GB", reducedMotion: "reduce", ...options });
    await visit.context.grantPermissions(["clipboard-read", "clipboard-write"]);
    visit.page = await visit.open(address);
    // Whoever comes by a link is in once its code is traded for a login.
    await visit.page.waitForFunction(() => !new URLSearchParams(location.search).has("code"));
    return visit;
  }

  /** Another page of the same visitor. */
  async open(address) {
    const page = await this.context.newPage();
    page.setDefaultTimeout(10_000);
    page.on("console", (message) => { if (["error", "warning"].includes(message.type())) this.faults.push(`${message.text()} ${message.location().url ?? ""}`.trim()); });
    page.on("pageerror", (error) => this.faults.push(String(error.stack ?? error)));
    await page.goto(address);
    return page;
  }

  async end() {
    await this.context.close();
    assert.deepEqual(this.faults.filter((fault) => !this.expected?.test(fault)), [], "the console stays clean");
  }
}

export async function shot(page, name) {
  await mkdir(SHOTS, { recursive: true });
  made += 1;
  await page.screenshot({ path: `${SHOTS}/${name}.png` });
}

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What keeps people out of a view; minor findings are let pass. */
export async function barriers(page) {
  // Our policy forbids scripts of others, and so it should: the check comes in by the debugger, as an evaluation.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations.filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary?.split("\n")[1]?.trim() ?? ""}`).join(" | ")}`);
}

/** What was said and is stored: what streamed before it is taken away, and whatever was opened or measured there. Only what is
    stored says when it was. */
export const stored = (page, text, timeout) => page.getByRole("log").locator("article[title]", { hasText: text }).first().waitFor({ timeout });

/** Nothing may stick out of a narrow page. */
export const sticksOut = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

/** How long two frames take while a list is scrolled, in the middle of many; the best of three, for others work here too. */
export const scrolled = (list) => list.evaluate(async (node) => {
  const middles = [];
  for (let round = 0; round < 3; round += 1) {
    const slow = [];
    node.scrollTop = 0;
    for (let step = 0; step < 30; step += 1) {
      const start = performance.now();
      node.scrollTop += 900;
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      slow.push(performance.now() - start);
    }
    middles.push(slow.sort((a, b) => a - b)[15]);
  }
  return Math.min(...middles);
});

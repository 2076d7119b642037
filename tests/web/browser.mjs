// A browser and its pages. A test fails if the console shows an unexpected error or warning.
import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";

const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
/** All files of a run save their screenshots in one folder. Its path is printed at the end. */
const SHOTS = process.env.POLYCLAW_SHOTS ?? path.join(os.tmpdir(), `polyclaw-shots-${process.ppid}`);
let made = 0;
process.once("exit", () => { if (made) console.log(`${made} screenshots of ${path.basename(process.argv[1])} are in ${SHOTS}`); });
/** Errors of a server that is stopped, or that stopped between the status check and the request. */
export const UNREACHABLE = /ERR_CONNECTION_(REFUSED|RESET)|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED_ENCODING|WebSocket connection|status of 502|status of (409|503|504)[^\n]*\/gateway\//;

export const DESKTOP = { viewport: { width: 1440, height: 900 } };
export const PHONE = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true };

/** Each viewport size in each theme. */
export const LOOKS = Object.fromEntries(Object.entries({ desktop: DESKTOP, phone: PHONE }).flatMap(([size, options]) =>
  ["light", "dark"].map((colorScheme) => [`${size}-${colorScheme}`, { ...options, colorScheme }])));

export const launch = (...more) => chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: [...FLAGS, ...more] });

/** A browser context with one page. */
export class Visit {
  static async of(browser, address, options = {}) {
    const visit = new Visit();
    visit.faults = [];
    visit.expected = null;
    visit.context = await browser.newContext({ ...DESKTOP, locale: "en-GB", reducedMotion: "reduce", ...options });
    await visit.context.grantPermissions(["clipboard-read", "clipboard-write"]);
    visit.page = await visit.open(address);
    // The login is complete when the page has exchanged the code and removed it from the URL.
    await visit.page.waitForFunction(() => !new URLSearchParams(location.search).has("code"));
    return visit;
  }

  /** Opens another page in the same context. */
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
    assert.deepEqual(this.faults.filter((fault) => !this.expected?.test(fault)), [], "the console has no unexpected messages");
  }
}

export async function shot(page, name) {
  await mkdir(SHOTS, { recursive: true });
  made += 1;
  await page.screenshot({ path: `${SHOTS}/${name}.png` });
}

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Returns the serious and critical accessibility violations of the page. */
export async function barriers(page) {
  // The content security policy blocks foreign scripts, so axe is injected through the debugger.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations.filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary?.split("\n")[1]?.trim() ?? ""}`).join(" | ")}`);
}

/** Waits until a message is stored. The stored message replaces the streamed text, with anything that was opened or measured in
    it. Only stored messages have a timestamp (`title`). */
export const stored = (page, text, timeout) => page.getByRole("log").locator("article[title]", { hasText: text }).first().waitFor({ timeout });

/** Returns by how many pixels the page is wider than its viewport. */
export const sticksOut = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

/** Returns the median time of two frames while a list is scrolled. The best of three rounds, because the machine may be busy. */
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

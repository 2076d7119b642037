// Logs of a real instance: follow, search, page and download, also with 100,000 lines.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { LOOKS, Visit, launch, scrolled, shot, sticksOut } from "./browser.mjs";
import { furnish, world } from "./fixture.mjs";
import { until } from "./plane.mjs";

let set, browser, visit, page, heard;
/** A stopped instance, so that only these tests write to its log. */
let id;
before(async () => {
  set = await world();
  await furnish(set);
  id = set.lab.id;
  await set.plane.log(id, ...Array.from({ length: 200 }, (_, n) => `${now()}  INFO quiet n=${n}`));
  browser = await launch();
});
after(async () => { await browser?.close(); await set?.end(); });
const dialog = () => page.getByRole("dialog");
const now = () => new Date().toISOString();
/** A row can be in the DOM but scrolled out of view. */
const isInView = (row) => until("the row is in view", () => row.evaluate((node) => {
  const [one, list] = [node, node.closest("[role=list]")].map((each) => each.getBoundingClientRect());
  return one.top >= list.top && one.bottom <= list.bottom + 1;
}));
async function enter(of, options) {
  visit = await Visit.of(browser, await set.link(), options);
  page = visit.page;
  heard = "";
  page.on("websocket", (socket) => socket.on("framereceived", ({ payload }) => { heard += payload; }));
  await page.getByRole("heading", { name: "Fleet" }).waitFor();
  await page.evaluate((to) => { location.hash = to; }, `#/i/${of}/logs`);
}

for (const [look, options] of Object.entries(LOOKS)) {
  describe(`${look}: log`, () => {
    beforeEach(() => enter(id, options));
    afterEach(() => visit.end());

    it("is followed, filtered, paused, read from the beginning and downloaded", async () => {
      await page.getByText(/^100 of 100 lines/).waitFor();
      await set.plane.log(id, `${now()} ERROR <b>something broke</b> loudly ${look}`);
      await page.getByText(`<b>something broke</b> loudly ${look}`).waitFor();
      await isInView(page.getByRole("listitem").filter({ hasText: `loudly ${look}` }));
      await page.getByLabel("Level").selectOption("error");
      await page.getByRole("searchbox").fill(`loudly ${look}`);
      await page.getByText(/^1 of 101 lines/).waitFor();
      await shot(page, `logs-found-${look}`);
      await page.getByRole("button", { name: "Pause" }).click();
      await set.plane.log(id, `${now()} ERROR loudly ${look} again`);
      await until("the line arrived", () => heard.includes(`loudly ${look} again`));
      await page.getByText(/^1 of 101 lines/).waitFor();
      await page.getByRole("button", { name: "Resume" }).click();
      await page.getByText(/^2 of 102 lines/).waitFor();
      const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download" }).click()]);
      assert.equal(file.suggestedFilename(), "daemon.log");
      const text = await readFile(await file.path(), "utf8");
      assert.ok(text.includes(`loudly ${look} again`) && text.includes("ready"), "the download contains the whole log");
      await page.getByRole("button", { name: /again/ }).click();
      await dialog().getByText("again", { exact: false }).first().waitFor();
      await page.keyboard.press("Escape");
      await page.getByLabel("Level").selectOption("");
      await page.getByRole("searchbox").fill("");
      await page.getByRole("tab", { name: "From the beginning" }).click();
      await page.getByRole("list", { name: "Logs" }).getByText(/ready/).first().waitFor();
      assert.ok(await sticksOut(page) <= 0);
    });
  });
}

for (const reducedMotion of ["reduce", "no-preference"]) {
  it(`a log is followed to its end while many lines arrive, motion: ${reducedMotion}`, async () => {
    await enter(id, { reducedMotion });
    await page.getByText(/of 100 lines/).waitFor();
    for (let round = 0; round < 5; round += 1) {
      await set.plane.log(id, ...Array.from({ length: 60 }, (_, n) => `${now()}  INFO ${reducedMotion} ${round} n=${n}`));
      await isInView(page.getByRole("listitem").filter({ hasText: `${reducedMotion} ${round}` }).filter({ hasText: "n=59" }));
    }
    await visit.end();
  });
}

describe("long log", () => {
  afterEach(() => visit.end());

  it("shows the message first in each line and is searched to its end", async () => {
    const straw = (from) => Array.from({ length: 2500 }, (_, n) => `${now()}  INFO straw n=${from + n}`);
    const needle = `${now()}  INFO turn{turn.id=${"x".repeat(60)} session.key=${"y".repeat(60)}}: the needle was found place=haystack`;
    await set.plane.log(set.main.id, ...straw(0), needle, ...straw(2500));
    await enter(set.main.id);
    await page.getByRole("searchbox").fill("needle");
    await page.getByRole("button", { name: "Search the whole log" }).click();
    const found = page.getByRole("list", { name: "Logs" }).getByRole("button", { name: /the needle was found/ });
    await found.waitFor();
    assert.match(await found.locator(".text").innerText(), /^the needle was found/);
    await found.click();
    await dialog().getByText("place=haystack", { exact: false }).waitFor();
    await shot(page, "log-line");
  });

  it("scrolls 100,000 lines smoothly with few of them in the DOM", async () => {
    await set.plane.act(set.lab.id, "start");
    await set.plane.act(set.lab.id, "stop");
    for (let n = 0; n < 100_000; n += 20_000) await set.plane.log(set.lab.id, ...Array.from({ length: 20_000 }, (_, at) => `2026-01-01T00:00:00.000Z  INFO line number ${n + at}`));
    await enter(set.lab.id);
    await page.getByRole("tab", { name: "From the beginning" }).click();
    const list = page.getByRole("list", { name: "Logs" });
    await list.getByRole("listitem").nth(5).waitFor();
    const took = await scrolled(list);
    console.log(`two frames of scrolling 100,000 lines: median ${took.toFixed(1)} ms`);
    assert.ok(took < 150, `${took} ms`);
    assert.ok(await list.getByRole("listitem").count() < 120);
  });

  it("stops a search on navigation or a new query", async () => {
    await enter(set.lab.id);
    const pages = [];
    // Each page is delayed, so that navigation can happen during the search.
    await page.route("**/logs?mode=page*", async (route) => { pages.push(route.request().url()); await new Promise((resolve) => setTimeout(resolve, 100)); await route.continue(); });
    await page.getByRole("tab", { name: "From the beginning" }).click();
    const untilPagesRead = async (least) => { await until("the search has read pages", () => pages.length >= least); };
    await page.getByRole("searchbox").fill("nowhere to be found");
    await untilPagesRead(5);
    await page.getByRole("searchbox").fill("line number 42");
    await page.getByRole("list", { name: "Logs" }).getByText("line number 42", { exact: true }).waitFor();
    await page.getByRole("searchbox").fill("nowhere to be found");
    await untilPagesRead(pages.length + 3);
    await page.evaluate(() => { location.hash = "#/audit"; });
    await page.getByRole("heading", { name: "Audit" }).waitFor();
    const asked = pages.length;
    await page.waitForTimeout(1000);
    assert.ok(pages.length <= asked + 1, `${pages.length - asked} pages were read after the search was abandoned`);
  });
});

// A page that is left open while agents talk: tens of thousands of frames leave nothing behind but what was said.
import assert from "node:assert/strict";
import { after, before as first, describe, it } from "node:test";
import { Visit, launch } from "./browser.mjs";
import { Daemon } from "./daemon.mjs";
import { frontOf } from "./front.mjs";
import { Model } from "./model.mjs";

const PIECES = 3000;
const TURNS = 4;
/** While the conversation is in view it grows by what is drawn of it. */
const DRAWN = 4 * 1024 * 1024;
/** Elsewhere nothing of it is left but some slack of the engine's. */
const LEFT = 1024 * 1024;
let model, daemon, front, browser;

first(async () => {
  model = await new Model().start();
  daemon = await Daemon.start(model.url);
  front = await frontOf(daemon);
  browser = await launch();
});
after(async () => { await browser?.close(); front?.stop(); await daemon?.remove(); model?.stop(); });

describe("hours of streaming", () => {
  it("do not grow the page", async () => {
    const { code } = await daemon.api("POST", "/logins");
    const visit = await Visit.of(browser, `${front.url}/?code=${code}`);
    const { page } = visit;
    await page.goto(`${front.url}/app/#/i/this/chat`);
    const debug = await visit.context.newCDPSession(page);
    const heap = async () => {
      await debug.send("HeapProfiler.collectGarbage");
      return (await debug.send("Runtime.getHeapUsage")).usedSize;
    };
    let frames = 0;
    page.on("websocket", (socket) => socket.on("framereceived", () => { frames += 1; }));
    await page.reload();
    let turn = 0;
    model.answer = async function* () {
      for (let n = 0; n < PIECES; n += 1) {
        if (n % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
        yield { text: n % 40 === 39 ? "word.\n\n" : "word " };
      }
      yield { text: `The end of ${turn}.` };
    };
    const elsewhere = async () => {
      await page.evaluate(() => { location.hash = "#/i/this/usage"; });
      await page.getByRole("heading", { name: "Usage" }).waitFor();
      return heap();
    };
    const talk = async () => {
      await page.getByRole("textbox", { name: "Message" }).fill(`Tell me more, ${turn}`);
      await page.getByRole("textbox", { name: "Message" }).press("Enter");
      await page.getByRole("log").getByText(`The end of ${turn}.`).waitFor({ timeout: 120_000 });
      return heap();
    };
    turn = 1;
    const sizes = [await talk()];
    // By now every part of the page is loaded.
    const chat = await page.evaluate(() => location.hash);
    const before = await elsewhere();
    await page.evaluate((hash) => { location.hash = hash; }, chat);
    for (turn = 2; turn <= TURNS; turn += 1) sizes.push(await talk());
    console.log(`${frames} frames; heap after each turn: ${sizes.map((size) => `${(size / 1048576).toFixed(1)} MB`).join(", ")}`);
    const rest = await elsewhere();
    console.log(`heap in another view: ${(before / 1048576).toFixed(1)} MB before, ${(rest / 1048576).toFixed(1)} MB after`);
    assert.ok(sizes.at(-1) - sizes[0] < DRAWN, String(sizes));
    assert.ok(rest - before < LEFT, `${rest} after ${before}`);
    visit.faults.length = 0;
    await visit.end();
  });
});

// A page that is left open while agents talk: tens of thousands of frames leave nothing behind but what was said.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Visit, launch } from "./browser.mjs";
import { Daemon } from "./daemon.mjs";
import { frontOf } from "./front.mjs";
import { Model } from "./model.mjs";

const PIECES = 4000;
const TURNS = 6;
/** What was said, drawn, and some slack of the engine's. What grew by the frame would be far beyond it. */
const MOST = 6 * 1024 * 1024;
let model, daemon, front, browser;

before(async () => {
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
    const sizes = [];
    for (turn = 1; turn <= TURNS; turn += 1) {
      await page.getByRole("textbox", { name: "Message" }).fill(`Tell me more, ${turn}`);
      await page.getByRole("textbox", { name: "Message" }).press("Enter");
      await page.getByRole("log").getByText(`The end of ${turn}.`).waitFor({ timeout: 120_000 });
      sizes.push(await heap());
    }
    console.log(`${frames} frames; heap after each turn: ${sizes.map((size) => `${(size / 1048576).toFixed(1)} MB`).join(", ")}`);
    assert.ok(sizes.at(-1) - sizes[0] < MOST, String(sizes));
    visit.faults.length = 0;
    await visit.end();
  });
});

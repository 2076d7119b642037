// Memory of a page that stays open while agents stream tens of thousands of frames.
import assert from "node:assert/strict";
import { after, before as first, describe, it } from "node:test";
import { Visit, launch, stored } from "./browser.mjs";
import { Daemon } from "./daemon.mjs";
import { frontOf } from "./front.mjs";
import { Model } from "./model.mjs";
import { until } from "./plane.mjs";

const PIECES = 2000;
/** Rounds in which one-time allocations happen. */
const WARM = 2;
const ROUNDS = 5;
/** A leaked frame takes at least 70 bytes. */
const BYTES_A_FRAME = 24;
/** A leaked conversation takes at least 700 nodes. */
const NODES_A_ROUND = 250;
/** Allowed growth of a visible conversation by its rendered content. */
const DRAWN = 2 * 1024 * 1024;
// Keeps the memory of the JavaScript engine steady: no compiled code is added or flushed at run time.
const STEADY = "--js-flags=--no-opt --no-maglev --no-sparkplug --no-flush-bytecode --no-lazy-feedback-allocation";
let model, daemon, front, browser, turn;

first(async () => {
  model = await new Model().start();
  model.answer = async function* () {
    for (let n = 0; n < PIECES; n += 1) {
      if (n % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
      yield { text: n % 40 === 39 ? "word.\n\n" : "word " };
    }
    yield { text: `The end of ${turn}.` };
  };
  daemon = await Daemon.start(model.url);
  front = await frontOf(daemon);
  browser = await launch(STEADY);
});
after(async () => { await browser?.close(); front?.stop(); await daemon?.remove(); model?.stop(); });

/** Opens a page and measures its sockets, frames and memory. */
async function watched() {
  const { code } = await daemon.api("POST", "/logins");
  const visit = await Visit.of(browser, `${front.url}/?code=${code}`);
  // A new page, so that no socket is opened before counting starts.
  const page = await visit.open("about:blank");
  await visit.page.close();
  const debug = await visit.context.newCDPSession(page);
  const count = { frames: 0, sockets: 0 };
  page.on("websocket", (socket) => {
    count.sockets += 1;
    socket.on("framereceived", () => { count.frames += 1; });
    socket.on("close", () => { count.sockets -= 1; });
  });
  await page.goto(`${front.url}/app/#/nowhere`);
  await page.getByText("Page not found").waitFor();
  const measure = async () => {
    for (let n = 0; n < 2; n += 1) await debug.send("HeapProfiler.collectGarbage");
    const { usedSize } = await debug.send("Runtime.getHeapUsage");
    const { nodes } = await debug.send("Memory.getDOMCounters");
    return { bytes: usedSize, nodes };
  };
  return { visit, page, count, measure };
}

async function talk(page, n) {
  turn = n;
  const field = page.getByRole("textbox", { name: "Message" });
  await field.fill(`Tell me more, ${n}`);
  await field.press("Enter");
  await stored(page, `The end of ${n}.`, 120_000);
}

const go = (page, hash) => page.evaluate((to) => { location.hash = to; }, hash);
const said = (seen) => seen.map(({ bytes, nodes }) => `${(bytes / 1048576).toFixed(2)} MB and ${nodes} nodes`).join(", ");

/** Returns the median growth per round. Caches grow in single steps; a leak grows in every round. */
function growth(seen, part) {
  const steps = seen.slice(1).map((one, n) => one[part] - seen[n][part]).sort((a, b) => a - b);
  return steps[Math.floor(steps.length / 2)];
}

describe("long streaming", () => {
  it("leaks no memory after leaving the chat", async () => {
    const { visit, page, count, measure } = await watched();
    const round = async (n) => {
      await go(page, "#/i/this/chat");
      await page.getByText("What would you like to do?").waitFor();
      await talk(page, n);
      await go(page, "#/nowhere");
      await page.getByText("Page not found").waitFor();
      await until("only the app's own socket is open", () => count.sockets === 1);
      return measure();
    };
    const seen = [];
    for (let n = 1; n <= WARM + ROUNDS; n += 1) seen.push(await round(n));
    console.log(`${count.frames} frames; in another view: ${said(seen)}`);
    const steady = seen.slice(WARM - 1);
    assert.ok(growth(steady, "bytes") < PIECES * BYTES_A_FRAME, said(seen));
    assert.ok(growth(steady, "nodes") < NODES_A_ROUND, said(seen));
    await visit.end();
  });

  it("grows a visible conversation only by its rendered content", async () => {
    const { visit, page, count, measure } = await watched();
    await go(page, "#/i/this/chat");
    await page.getByText("What would you like to do?").waitFor();
    const seen = [];
    for (let n = 1; n <= 4; n += 1) { await talk(page, n); seen.push(await measure()); }
    console.log(`${count.frames} frames; in view: ${said(seen)}`);
    assert.ok(seen.at(-1).bytes - seen[0].bytes < DRAWN, said(seen));
    await visit.end();
  });
});

// Lost and partly working connections: their notices, and messages written meanwhile.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { UNREACHABLE, Visit, launch, shot, stored } from "./browser.mjs";
import { Daemon } from "./daemon.mjs";
import { frontOf } from "./front.mjs";
import { Model, gate, lastUserText, says } from "./model.mjs";

let model, daemon, front, browser, visit, page;
before(async () => {
  model = await new Model().start();
  daemon = await Daemon.start(model.url);
  front = await frontOf(daemon);
  browser = await launch();
});
after(async () => { await browser?.close(); front?.stop(); await daemon?.remove(); model?.stop(); });
beforeEach(async () => {
  const { code } = await daemon.api("POST", "/logins");
  visit = await Visit.of(browser, `${front.url}/?code=${code}`);
  page = visit.page;
  await page.goto(`${front.url}/app/#/i/this/chat`);
  await page.getByText("What would you like to do?").waitFor();
});
afterEach(() => visit.end());
const log = () => page.getByRole("log");
const go = (hash) => page.evaluate((to) => { location.hash = to; }, hash);
async function say(text) { await page.getByRole("textbox", { name: "Message" }).fill(text); await page.getByRole("textbox", { name: "Message" }).press("Enter"); }

describe("connection", () => {
  it("lost during an answer is reported, reconnects and shows one answer", async () => {
    visit.expected = UNREACHABLE;
    const never = gate();
    model.answer = async function* () { yield { text: "An answer cut sho" }; await never.passed; };
    await say("Survive this");
    await log().getByText("An answer cut sho").waitFor();
    await daemon.kill();
    await page.getByText(/Connection lost|No connection to the server/).first().waitFor();
    await say("And this, meanwhile");
    await page.getByText("Not sent.", { exact: false }).waitFor();
    await shot(page, "chat-lost");
    model.answer = async function* (asked) { yield { text: `Whole: ${lastUserText(asked)}` }; };
    await daemon.run();
    await log().getByText("Whole: And this, meanwhile").waitFor({ timeout: 45_000 });
    await page.getByText(/Connection lost|No connection to the server/).first().waitFor({ state: "hidden" });
    for (const text of ["Survive this", "And this, meanwhile"]) assert.equal(await log().locator(".bubble", { hasText: text }).count(), 1, text);
    assert.equal(await log().getByText("An answer cut sho", { exact: true }).count(), 0);
    never.open();
  });

  it("without WebSockets polls with a notice and switches back when they work", async () => {
    visit.expected = /WebSocket/;
    model.answer = says("Heard without a socket.");
    await say("Before");
    await stored(page, "Heard without a socket.");
    let isBlocked = true;
    await page.routeWebSocket(/\/ws/, (socket) => { if (isBlocked) void socket.close({ code: 1013, reason: "none today" }); else socket.connectToServer(); });
    await page.reload();
    await stored(page, "Heard without a socket.");
    await page.getByText("No live connection. This page refreshes every few seconds instead.").waitFor({ timeout: 20_000 });
    const key = decodeURIComponent((await page.evaluate(() => location.hash)).split("/").at(-1));
    model.answer = says("Written elsewhere.");
    await daemon.api("POST", `/sessions/${encodeURIComponent(key)}/messages?wait=20`, { text: "Hi" });
    await stored(page, "Written elsewhere.", 20_000);
    isBlocked = false;
    await page.getByRole("button", { name: "Try now" }).click();
    await page.getByText("No live connection").waitFor({ state: "hidden" });
  });

  it("is reported as lost when all calls fail, but not when a single call fails", async () => {
    visit.expected = /ERR_FAILED|502/;
    const said = page.getByText("No connection to the server", { exact: false });
    await page.route("**/sessions?*", (route) => route.fulfill({ status: 502, body: "" }));
    const looked = page.waitForResponse((answer) => answer.url().endsWith("/health"));
    await go("#/i/this/sessions");
    await looked;
    assert.equal(await said.count(), 0);
    await page.unrouteAll();
    await page.route(/\/api\/v1\/|\/health$/, (route) => route.abort());
    await go("#/i/this/usage");
    await said.waitFor();
    assert.equal(await page.getByText("Retrying in").count(), 0, "no retry countdown is shown");
    await page.unrouteAll();
    await said.waitFor({ state: "hidden" });
  });
});

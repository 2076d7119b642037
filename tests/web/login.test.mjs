// The login of a browser: what another program on this machine can do with what it is sent of it, and how it ends.
import assert from "node:assert/strict";
import http from "node:http";
import { after, before, describe, it } from "node:test";
import { launch, Visit } from "./browser.mjs";
import { Daemon } from "./daemon.mjs";
import { frontOf } from "./front.mjs";
import { Model } from "./model.mjs";

let browser, daemon, front, model;
before(async () => {
  model = await new Model().start();
  daemon = await Daemon.start(model.url);
  front = await frontOf(daemon);
  browser = await launch();
});
after(async () => { await browser?.close(); front?.stop(); await daemon?.remove(); model?.stop(); });

async function enter() {
  const { code } = await daemon.api("POST", "/logins");
  const visit = await Visit.of(browser, `${front.url}/app/?code=${code}`);
  await visit.page.locator("#main").waitFor();
  return visit;
}

describe("a login", () => {
  it("is of no use to a program on another port, which is sent its cookie", async () => {
    const seen = [];
    const thief = http.createServer((request, response) => { seen.push(request.headers.cookie ?? ""); response.end("preview"); });
    await new Promise((resolve) => thief.listen(0, "127.0.0.1", resolve));
    const visit = await enter();
    try {
      const other = await visit.context.newPage();
      await other.goto(`http://127.0.0.1:${thief.address().port}/`);
      const cookie = seen.find((one) => one.includes("polyclaw_"));
      assert.ok(cookie, "browsers send it to every port");
      for (const [method, route] of [["GET", "/sessions"], ["POST", "/agents"], ["POST", "/logins"]]) {
        const answer = await fetch(`${daemon.url}/api/v1${route}`, { method, headers: { cookie } });
        assert.equal(answer.status, 401, `${method} ${route}`);
      }
      assert.equal(await other.evaluate(() => localStorage.getItem("polyclaw.login")), null, "the key stays with its page");
    } finally {
      thief.closeAllConnections();
      thief.close();
      await visit.end();
    }
  });

  it("ends with the button, for every page of the browser", async () => {
    const visit = await enter();
    visit.expected = /401|WebSocket/;
    await visit.page.getByRole("button", { name: "Log out" }).click();
    await visit.page.getByRole("heading", { name: "You are not logged in" }).waitFor();
    await visit.page.reload();
    await visit.page.getByRole("heading", { name: "You are not logged in" }).waitFor();
    await visit.end();
  });
});

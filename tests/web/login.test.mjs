// Browser logins: another program on this machine cannot use the cookie, and logout ends the login.
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

describe("login", () => {
  it("cannot be used by a program on another port that receives its cookie", async () => {
    const seen = [];
    const thief = http.createServer((request, response) => { seen.push(request.headers.cookie ?? ""); response.end("preview"); });
    await new Promise((resolve) => thief.listen(0, "127.0.0.1", resolve));
    const visit = await enter();
    try {
      const other = await visit.context.newPage();
      await other.goto(`http://127.0.0.1:${thief.address().port}/`);
      const cookie = seen.find((one) => one.includes("polyclaw_"));
      assert.ok(cookie, "browsers send the cookie to every port");
      for (const [method, route] of [["GET", "/sessions"], ["POST", "/agents"], ["POST", "/logins"]]) {
        const answer = await fetch(`${daemon.url}/api/v1${route}`, { method, headers: { cookie } });
        assert.equal(answer.status, 401, `${method} ${route}`);
      }
      assert.equal(await other.evaluate(() => localStorage.getItem("polyclaw.login")), null, "the key is not available on another origin");
    } finally {
      thief.closeAllConnections();
      thief.close();
      await visit.end();
    }
  });

  it("ends on all pages of the browser with the logout button", async () => {
    const visit = await enter();
    visit.expected = /401|WebSocket/;
    await visit.page.getByRole("button", { name: "Log out" }).click();
    await visit.page.getByRole("heading", { name: "You are not logged in" }).waitFor();
    await visit.page.reload();
    await visit.page.getByRole("heading", { name: "You are not logged in" }).waitFor();
    await visit.end();
  });
});

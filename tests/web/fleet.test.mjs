// The fleet: error messages, unreachable servers and changes made elsewhere.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { LOOKS, UNREACHABLE, Visit, launch, shot, stored } from "./browser.mjs";
import { furnish, question, world } from "./fixture.mjs";
import { says } from "./model.mjs";
import { until } from "./plane.mjs";

let set, browser, visit, page;
const go = (hash) => page.evaluate((to) => { location.hash = to; }, hash);
const ofMain = (view) => go(`#/i/${set.main.id}/${view}`);
const card = (name) => page.locator("main li", { has: page.getByRole("link", { name, exact: true }) });
const dialog = () => page.getByRole("dialog");

/** Counts requests of a page in ten idle seconds. The refresh every thirty seconds makes at most one; polling would make more. */
async function asksFor(one, name) {
  let [asked, last] = [0, Date.now()];
  one.on("request", (request) => { if (name.test(request.url())) { asked += 1; last = Date.now(); } });
  await until("earlier changes were read", () => Date.now() - last > 1500);
  asked = 0;
  await one.waitForTimeout(10_000);
  return asked;
}

before(async () => { set = await world(); await furnish(set); browser = await launch(); });
after(async () => { await browser?.close(); await set?.end(); });
beforeEach(async () => {
  visit = await Visit.of(browser, await set.link());
  page = visit.page;
  await page.getByRole("heading", { name: "Fleet" }).waitFor();
});
afterEach(() => visit.end());

describe("fleet", () => {
  it("shows health, uptime, usage and failure reason of each instance", async () => {
    for (const text of ["Healthy", /^\d+.*(sec|min|hr)/]) await card("main").getByText(text).first().waitFor({ timeout: 20_000 });
    await card("main").getByText(/^\d+(\.\d)?k$/).waitFor({ timeout: 20_000 });
    await card("main").getByText(/^\$0\.\d+/).waitFor();
    await card("shop-support").getByText("Crashed", { exact: true }).waitFor();
    assert.equal(await card("shop-support").getByText("Unknown").count(), 0, "no usage is not shown as unknown");
    await until("cards have equal height", () => page.evaluate(() => {
      const heights = [...document.querySelectorAll("main ul.grid > li")].slice(0, 2).map((one) => one.getBoundingClientRect().height);
      return heights.length === 2 && heights[0] === heights[1];
    }));
    await card("main").getByRole("button", { name: "Chat" }).click();
    await page.getByText("What would you like to do?").waitFor();
  });

  it("shows earlier activity immediately, also of stopped instances", async () => {
    for (const name of ["main", "research-lab"]) {
      await card(name).getByText(/^Last turn /).waitFor({ timeout: 3000 });
      const heights = (await card(name).locator("svg[role=img] path").getAttribute("d")).split(/[ML]/).filter(Boolean).map((point) => Number(point.split(" ")[1]));
      assert.ok(new Set(heights).size > 1, `${name}: ${heights}`);
    }
    assert.equal(await card("shop-support").getByText(/^Last turn /).count(), 0);
  });

  it("shows no usage yet, instead of unknown, for an unused running instance", async () => {
    visit.expected = UNREACHABLE;
    const fresh = await set.plane.make("fresh");
    await set.plane.act(fresh.id, "start");
    await until("both labels are shown", async () => await card("fresh").getByText("None yet", { exact: true }).count() === 2);
    await go(`#/i/${fresh.id}/overview`);
    await until("both labels are shown in the overview", async () => await page.locator("main dd").getByText("None yet", { exact: true }).count() === 2);
    await page.getByText("Add Telegram, Slack and other channels in the config.", { exact: false }).waitFor();
    assert.equal(await page.locator("main").getByText("Unknown", { exact: true }).count(), 0);
    await set.plane.act(fresh.id, "stop");
    await set.plane.act(fresh.id, "archive");
    await set.plane.api(`/instances/${fresh.id}`, "DELETE");
  });

  it("suggests known models for a new instance and names their instance", async () => {
    await page.getByRole("button", { name: "New instance" }).first().click();
    await dialog().locator("datalist option[value='scripted/steady']", { hasText: "Same as main" }).waitFor({ state: "attached" });
  });

  it("shows error messages in English and Chinese", async () => {
    visit.expected = /409/;
    const create = async () => { await page.locator("main header button").last().click(); await dialog().locator("input").first().fill("main"); await dialog().locator("button[type=submit]").click(); };
    await create();
    await page.getByText("This name is already in use.").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "中文" }).click();
    await create();
    await page.getByText("该名称已被使用。").waitFor();
  });

  it("shows errors of a dialog inside it, and they can be dismissed", async () => {
    visit.expected = /409/;
    await page.getByRole("button", { name: "New instance" }).first().click();
    const make = async (name) => { await dialog().getByLabel("Name").fill(name); await dialog().locator("button[type=submit]").click(); };
    await make("main");
    const toast = dialog().getByRole("status").filter({ hasText: "This name is already in use." });
    await toast.waitFor();
    await shot(page, "toast-in-dialog");
    await dialog().getByRole("button", { name: "Dismiss" }).click();
    await toast.waitFor({ state: "hidden" });
    await make("main");
    await dialog().getByText("'main'", { exact: false }).waitFor();
    await make("research-lab");
    await dialog().getByText("'research-lab'", { exact: false }).waitFor();
    assert.equal(await page.getByText("This name is already in use.").count(), 1, "a repeated attempt shows a new message");
    await page.keyboard.press("Escape");
    await dialog().waitFor({ state: "hidden" });
    await page.getByText("This name is already in use.").waitFor({ state: "detached" });
  });

  it("keeps the typed text when the name of a clone is taken", async () => {
    visit.expected = /409/;
    await card("main").getByRole("button", { name: /Clone/ }).click();
    await dialog().getByLabel("Name").fill("research-lab");
    await dialog().locator("button[type=submit]").click();
    await dialog().getByText("This name is already in use.").waitFor();
    assert.equal(await dialog().getByLabel("Name").inputValue(), "research-lab");
  });

  it("shows error toasts below the view until navigation or a timeout, also on phones", async () => {
    for (const options of [LOOKS["desktop-light"], LOOKS["phone-light"]]) {
      const one = await Visit.of(browser, await set.link(), options);
      one.expected = /502/;
      await one.page.getByRole("heading", { name: "Fleet" }).waitFor();
      await one.page.clock.install();
      await one.page.route("**/restart", (route) => route.fulfill({ status: 502, body: "" }));
      const fail = async () => {
        await one.page.locator("main li", { hasText: "main" }).getByRole("button", { name: "Restart" }).first().click();
        await one.page.getByRole("dialog").getByRole("button", { name: "Restart" }).click();
        await one.page.locator(".toast").waitFor();
      };
      await fail();
      const [toast, view] = await Promise.all([".toast", "main"].map((name) => one.page.locator(name).first().boundingBox()));
      assert.ok(toast.y >= view.y + view.height, "the toast does not cover the view");
      await one.page.evaluate(() => { location.hash = "#/audit"; });
      await one.page.locator(".toast").waitFor({ state: "detached" });
      await one.page.evaluate(() => { location.hash = "#/fleet"; });
      await fail();
      await one.page.clock.fastForward(20_000);
      await one.page.locator(".toast").waitFor({ state: "detached" });
      await one.end();
    }
  });

  it("reports a lost server with the age of its data and loads a view opened meanwhile after recovery", async () => {
    visit.expected = /./;
    await card("main").getByText("Running", { exact: true }).waitFor();
    await page.route("**/assets/Access*", (route) => route.abort());
    await set.plane.away(async () => {
      await page.getByText(/No connection to the server\. Showing data as of \d/).waitFor();
      assert.match(await page.locator("main ul.grid").evaluate((node) => getComputedStyle(node.closest(".page")).filter), /grayscale/);
      assert.doesNotMatch(await page.locator("#instance-switch").innerText(), /running/i);
      await shot(page, "away");
      await go("#/audit");
      // The code of the view may be loaded already or not. Both cases show a message.
      await page.getByText(/Could not load the audit log|Polyclaw is not responding/).first().waitFor();
      await go("#/access");
      await page.getByText("Polyclaw is not responding").waitFor();
      await shot(page, "away-view");
      await page.unroute("**/assets/Access*");
    });
    await page.getByText("Grafana").waitFor({ timeout: 20_000 });
    await page.getByText("No connection to the server").waitFor({ state: "hidden" });
  });

  it("reloads a view that was opened while the server was unreachable", async () => {
    visit.expected = /./;
    await go("#/access");
    await page.getByText("Grafana").waitFor();
    await go("#/fleet");
    await set.plane.away(async () => {
      await page.getByText("No connection to the server").waitFor();
      await go("#/access");
      await page.getByRole("heading", { name: "Tokens" }).waitFor();
    });
    await page.getByText("Grafana").waitFor({ timeout: 40_000 });
  });

  it("offers to start a stopped instance and shows the view once it runs", async () => {
    visit.expected = UNREACHABLE;
    for (const view of ["chat", "sessions", "agents", "teams", "usage", "events"]) {
      await go(`#/i/${set.lab.id}/${view}`);
      await page.getByText("research-lab is not running (Stopped)").waitFor();
      assert.equal(await page.getByText("Loading…").count(), 0);
    }
    await go(`#/i/${set.lab.id}/teams`);
    await shot(page, "standby");
    await page.getByRole("main").getByRole("button", { name: "Start" }).click();
    await page.getByRole("heading", { name: "Teams", exact: true }).waitFor({ timeout: 40_000 });
    await set.plane.act(set.lab.id, "stop");
    await page.getByText("research-lab is not running (Stopped)").waitFor();
    await page.getByRole("heading", { name: "Teams", exact: true }).waitFor();
  });

  it("shows changes made elsewhere immediately, including a crash", async () => {
    visit.expected = UNREACHABLE;
    const { pid } = await set.plane.act(set.lab.id, "start");
    await card("research-lab").getByText("Running", { exact: true }).waitFor();
    process.kill(pid, "SIGKILL");
    await until("the instance is restarted", async () => { const one = await set.plane.api(`/instances/${set.lab.id}`); return one.status === "running" && one.pid && one.pid !== pid; }, 40_000);
    const again = String((await set.plane.api(`/instances/${set.lab.id}`)).pid);
    await card("research-lab").getByText(again, { exact: true }).waitFor();
    await set.plane.act(set.lab.id, "stop");
    await card("research-lab").getByText("Stopped", { exact: true }).waitFor();
  });

  it("shows an error instead of an empty list when loading fails", async () => {
    visit.expected = /502/;
    let fails = true;
    await page.route("**/api/audit?*", (route) => (fails ? route.fulfill({ status: 502, body: "" }) : route.continue()));
    await go("#/audit");
    // The code of the view may be loaded already or not. Both cases show a message.
    await page.getByText(/Could not load the audit log|Polyclaw is not responding/).first().waitFor();
    assert.equal(await page.getByText("No entries").count(), 0);
    fails = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("Instance started").first().waitFor();
  });

  it("explains an unknown address", async () => {
    await go("#/i/nobody/overview");
    await page.getByText("Instance “nobody” not found").waitFor();
  });
});

describe("approvals", () => {
  it("show an empty inbox only after loading and update without polling", async () => {
    const key = await question(set);
    const cold = await Visit.of(browser, await set.link());
    await cold.page.getByRole("heading", { name: "Fleet" }).waitFor();
    await cold.page.addInitScript(() => {
      globalThis.wasSaid = false;
      new MutationObserver(() => { globalThis.wasSaid ||= (document.body?.textContent ?? "").includes("No pending approvals"); }).observe(document, { childList: true, subtree: true });
    });
    await cold.page.evaluate(() => { location.hash = "#/approvals"; });
    await cold.page.reload();
    await cold.page.getByText("main wants to use shell").waitFor();
    await cold.page.getByText("rm -r build", { exact: true }).waitFor();
    assert.equal(await cold.page.evaluate(() => globalThis.wasSaid), false);
    await cold.page.getByRole("button", { name: "Deny" }).first().click();
    await cold.page.getByText("No pending approvals").waitFor();
    await until("the denied turn has ended", async () => !(await set.main.api(`/sessions/${encodeURIComponent(key)}`)).running_turn_id);
    assert.ok(await asksFor(cold.page, /\/approvals$/) <= 1, "an idle page makes no requests");
    await question(set, "rm -r dist");
    await cold.page.getByText("rm -r dist").first().waitFor({ timeout: 15_000 });
    await cold.page.getByRole("button", { name: "Deny" }).first().click();
    await cold.page.getByText("No pending approvals").waitFor();
    await cold.end();
  });
});

describe("instance lists", () => {
  it("update live and make no requests while idle", async () => {
    await ofMain("sessions");
    await page.getByRole("link", { name: /Plan the week/ }).waitFor();
    assert.ok(await asksFor(page, /\/sessions\?/) <= 1);
    set.model.answer = says("Here.");
    const { session_key } = await set.main.api("/sessions", "POST", { title: "Made elsewhere" });
    await set.main.api(`/sessions/${encodeURIComponent(session_key)}/messages?wait=20`, "POST", { text: "Hi" });
    await page.getByRole("link", { name: /Made elsewhere/ }).waitFor({ timeout: 15_000 });
    await page.getByRole("link", { name: /Made elsewhere.*2\.1k tokens/s }).waitFor();
  });
});

describe("conversation", () => {
  it("keeps command replies in their position", async () => {
    const say = async (text, answer) => {
      set.model.answer = says(answer);
      await page.getByRole("textbox", { name: "Message" }).fill(text);
      await page.keyboard.press("Enter");
    };
    await ofMain("chat");
    await say("First", "First answer.");
    await page.getByRole("log").getByText("First answer.").waitFor();
    await say("/help", "");
    await page.getByRole("log").getByText("/stop", { exact: false }).waitFor();
    await say("Second", "Second answer.");
    await stored(page, "Second answer.");
    const said = await page.getByRole("log").innerText();
    const places = ["First answer.", "/help", "Second answer."].map((text) => said.indexOf(text));
    assert.deepEqual(places, places.toSorted((a, b) => a - b), said);
    await until("the newest answer is in view", () => page.getByRole("log").getByText("Second answer.").first().evaluate((node) => node.getBoundingClientRect().bottom < innerHeight));
  });

  it("shows a denied tool call as denied instead of failed", async () => {
    const key = await question(set, "rm -r old");
    await ofMain(`chat/${encodeURIComponent(key)}`);
    await page.getByRole("button", { name: "Deny" }).click();
    await stored(page, "Cleaned up.");
    await page.getByRole("log").getByText("Denied", { exact: true }).waitFor();
    assert.equal(await page.getByRole("log").getByText("Failed", { exact: true }).count(), 0);
  });

  it("shows hostile agent names and task subjects as plain text", async () => {
    const named = `<img src=x onerror="document.title='owned'">👾`;
    const hostile = `${named}\u202E`;
    await set.main.api("/agents", "POST", { agent_id: "hostile", name: `${named}${"long".repeat(8)}`, description: hostile.repeat(3), identity: { emoji: "<b>" } });
    await set.main.api("/teams", "POST", { name: "hostile", description: hostile });
    const { task_id: first } = await set.main.api("/teams/hostile/tasks", "POST", { subject: hostile, description: hostile });
    await set.main.api("/teams/hostile/tasks", "POST", { subject: `${hostile} ${"verylong".repeat(15)}`, depends_on: [first] });
    for (const [look, options] of Object.entries({ desktop: LOOKS["desktop-light"], phone: LOOKS["phone-dark"] })) {
      const one = await Visit.of(browser, await set.link(), options);
      await one.page.getByRole("heading", { name: "Fleet" }).waitFor();
      for (const [view, heading] of [["agents/hostile", "Agents"], ["teams/hostile", "Teams"], ["chat", "What would you like to do?"], ["usage", "Usage"], ["events", "Events"]]) {
        await one.page.evaluate((to) => { location.hash = to; }, `#/i/${set.main.id}/${view}`);
        await one.page.locator("main").getByRole("heading", { name: heading, exact: true }).first().waitFor();
        if (/hostile/.test(view)) await one.page.locator("main").getByText("<img src=x", { exact: false }).filter({ visible: true }).first().waitFor();
        if (view.startsWith("teams")) { await one.page.getByRole("tab", { name: "Dependencies" }).click(); await one.page.locator("svg text", { hasText: "<img" }).first().waitFor(); }
        assert.equal(await one.page.locator("main img").count(), 0, view);
        if (/hostile/.test(view)) await shot(one.page, `hostile-${view.split("/")[0]}-${look}`);
        assert.ok(await one.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${view} is wider than the viewport on ${look}`);
      }
      assert.doesNotMatch(await one.page.title(), /^owned/);
      await one.end();
    }
    await set.main.api("/agents/hostile", "DELETE");
  });
});

describe("config", () => {
  const write = async (text) => { await page.locator(".cm-content").click(); await page.keyboard.press("Control+End"); await page.keyboard.insertText(text); };
  it("hides secrets, keeps them on save and asks before it writes one", async () => {
    visit.expected = /400/;
    await ofMain("config");
    await page.locator(".cm-content").waitFor();
    assert.doesNotMatch(await page.locator(".cm-content").innerText(), /a-key-for-tests/);
    await write('\n[providers.other]\nkind = "openai_compatible"\nbase_url = "http://127.0.0.1:9/v1"\napi_key = "another-key-for-tests"\n');
    await page.getByText("Valid", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Review and save" }).click();
    await dialog().getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("button", { name: "Write secrets" }).click();
    await page.getByText("Saved.").first().waitFor();
    const { secrets } = await set.plane.api(`/instances/${set.main.id}/config`);
    assert.deepEqual(secrets.map((one) => one.path).sort(), ["providers.other.api_key", "providers.scripted.api_key"]);
    await set.plane.configure(set.main.id, { providers: { other: null } });
  });
});

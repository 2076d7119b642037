// Common workflows on the real control plane: on desktops and phones, in the light and the dark theme.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { LOOKS, UNREACHABLE, Visit, launch, shot, sticksOut } from "./browser.mjs";
import { scripted } from "./fixture.mjs";
import { freePort } from "./daemon.mjs";
import { Model, followsTool, gate, lastUserText, says } from "./model.mjs";
import { Plane, frontOf, until } from "./plane.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

for (const [look, options] of Object.entries(LOOKS)) {
  describe(`${look}: complete workflow`, () => {
    let plane, front, model, visit, page, id;
    const dialog = () => page.getByRole("dialog");
    const card = (name) => page.locator("main li", { has: page.getByRole("link", { name, exact: true }) });
    const go = (hash) => page.evaluate((to) => { location.hash = to; }, hash);
    const log = () => page.getByRole("log");
    const say = async (text) => { await page.getByRole("textbox", { name: "Message" }).fill(text); await page.getByRole("textbox", { name: "Message" }).press("Enter"); };
    const api = (route, method, body) => plane.api(`/instances/${id}/gateway${route}`, method, body);

    before(async () => {
      model = await new Model().start();
      plane = await new Plane().start();
      front = await frontOf(plane);
      visit = await Visit.of(browser, front.url + await plane.link(), options);
      visit.expected = UNREACHABLE;
      page = visit.page;
    });
    after(async () => { try { await visit?.end(); } finally { front?.stop(); await plane?.remove(); model?.stop(); } });
    beforeEach(() => { visit.expected = UNREACHABLE; });
    afterEach(async () => assert.ok(await sticksOut(page) <= 0, "nothing is wider than the viewport"));

    it("logs in by link, shows an empty fleet, creates an instance and starts it", async () => {
      await page.getByText("No instances yet").waitFor();
      assert.equal(page.url().includes("code="), false);
      assert.equal(await page.evaluate(() => document.cookie), "", "scripts cannot read the cookie");
      await shot(page, `first-${look}`);
      await page.getByRole("button", { name: "New instance" }).first().click();
      await dialog().getByLabel("Name").fill("first");
      await dialog().getByLabel("Port").fill(String(await freePort()));
      await dialog().getByRole("button", { name: "Create" }).click();
      await card("first").getByText("Running", { exact: true }).waitFor({ timeout: 30_000 });
      id = (await plane.api("/instances")).instances[0].id;
      await card("first").getByText("Healthy", { exact: true }).waitFor();
      await card("first").getByText(/^\d+(\.\d)? (sec|min)/).waitFor();
    });

    it("edits the config: validated, shown as a diff, saved and applied", async () => {
      await go(`#/i/${id}/config`);
      const { providers, tools } = scripted(model);
      await page.locator(".cm-content").click();
      await page.keyboard.press("Control+End");
      await page.keyboard.insertText(`\n[providers.scripted]\nkind = "openai_compatible"\nbase_url = "${providers.scripted.base_url}"\nmodels = ["steady"]\n[tools]\napprovals = { shell = "${tools.approvals.shell}" }\nprot = 1\n`);
      await page.getByText("Errors: 1").waitFor();
      assert.equal(await page.getByRole("button", { name: "Review and save" }).isEnabled(), false);
      await page.keyboard.press("Control+End");
      for (let n = 0; n < "prot = 1\n".length; n += 1) await page.keyboard.press("Backspace");
      await page.getByText("Valid", { exact: true }).waitFor();
      await page.getByRole("button", { name: "Review and save" }).click();
      await dialog().getByText("[providers.scripted]").waitFor();
      await shot(page, `config-diff-${look}`);
      await dialog().getByRole("button", { name: "Save", exact: true }).click();
      await page.getByText("The running instance uses the new config.").waitFor();
    });

    it("creates an agent, streams its answer and switches agent and model", async () => {
      await go(`#/i/${id}/agents/%2B`);
      await page.getByLabel("ID *").fill("talker");
      await page.getByLabel("Name *").fill("Talker");
      await page.getByLabel("Model", { exact: true }).first().selectOption("scripted/steady");
      await page.getByRole("button", { name: "Create agent" }).click();
      await page.waitForURL(/agents\/talker$/);
      const more = gate();
      model.answer = async function* () { yield { text: "The first half" }; await more.passed; yield { text: " and the **second**." }; };
      await go(`#/i/${id}/chat`);
      await page.getByRole("combobox", { name: "Agent", exact: true }).selectOption("talker");
      await say("Hello");
      await log().getByText("The first half", { exact: false }).waitFor({ timeout: 20_000 });
      await shot(page, `chat-streams-${look}`);
      more.open();
      await log().getByText("second").waitFor();
      await page.getByRole("button", { name: "Stop" }).waitFor({ state: "hidden" });
      assert.equal(await log().locator("article").count(), 2);
      model.answer = says("By main.");
      await page.getByLabel("Agent").selectOption("main");
      await page.getByLabel("Model").selectOption("scripted/steady");
      await until("the session has both", async () => (await api("/sessions")).sessions.some((one) => one.active_agent_id === "main" && one.model === "scripted/steady"));
      await say("And now?");
      await log().getByText("By main.").waitFor();
    });

    it("accepts a message during a turn, asks for approval of a tool and stops a turn", async () => {
      const more = gate();
      const answers = [
        async function* () { yield { text: "Working on it." }; await more.passed; yield { call: { id: "call-1", name: "list_dir", arguments: { path: "." } } }; },
        says("A quick answer."), says("The long task is done."),
      ];
      model.answer = (asked) => answers.shift()(asked);
      await say("A long task");
      await log().getByText("Working on it.").waitFor();
      await say("A quick question");
      await page.getByText("Waiting: will be handled at the next step").waitFor();
      more.open();
      await log().getByText("The long task is done.").waitFor();
      model.answer = async function* (asked) {
        if (followsTool(asked)) yield { text: "Ran it." };
        else yield { call: { id: "call-2", name: "shell", arguments: { command: "echo from the shell" } } };
      };
      await say("Run it");
      await page.getByText("Approval needed: shell").waitFor();
      await shot(page, `chat-asks-${look}`);
      await page.getByRole("button", { name: "Allow" }).click();
      await log().getByText("Ran it.").waitFor();
      const never = gate();
      model.answer = async function* (asked) { yield { text: `On and on: ${lastUserText(asked)}` }; await never.passed; };
      await say("Count for ever");
      await log().getByText("On and on", { exact: false }).waitFor();
      await page.getByRole("button", { name: "Stop" }).click();
      await log().getByText("Stopped here.").waitFor();
      never.open();
    });

    it("reports a killed control plane and shows the current state after recovery without a reload", async () => {
      await go("#/fleet");
      await card("first").getByText("Running", { exact: true }).waitFor();
      await page.evaluate(() => { globalThis.wasNotReloaded = true; });
      await plane.away(async () => {
        await page.getByText("No connection to the server.", { exact: false }).waitFor({ timeout: 20_000 });
        await shot(page, `lost-${look}`);
        process.kill(Number.parseInt(await readFile(`${plane.home}/cp/instances/${id}/daemon.pid`, "utf8"), 10), "SIGKILL");
      });
      await page.getByText("No connection to the server").waitFor({ state: "hidden", timeout: 40_000 });
      // The instance was killed while the control plane was down. The page must read the new state.
      await until("the instance runs again", async () => (await plane.api(`/instances/${id}`)).status === "running", 40_000);
      await card("first").getByText("Running", { exact: true }).waitFor({ timeout: 40_000 });
      assert.equal(await page.evaluate(() => globalThis.wasNotReloaded), true);
    });

    it("restarts an instance as a new healthy process", async () => {
      const { pid } = await plane.api(`/instances/${id}`);
      await card("first").getByRole("button", { name: "Restart" }).click();
      await dialog().getByRole("button", { name: "Restart" }).click();
      let now;
      await until("the instance has a new process", async () => { now = await plane.api(`/instances/${id}`); return now.status === "running" && now.pid && now.pid !== pid; }, 40_000);
      await card("first").getByText(String(now.pid), { exact: true }).waitFor({ timeout: 20_000 });
      await card("first").getByText("Running", { exact: true }).waitFor();
      await card("first").getByText("Healthy", { exact: true }).waitFor({ timeout: 20_000 });
    });

    it("clones, archives, unarchives and deletes with confirmation, and the audit log lists each", async () => {
      await card("first").getByRole("button", { name: "Stop" }).click();
      await dialog().getByRole("button", { name: "Stop" }).click();
      await card("first").getByText("Stopped", { exact: true }).waitFor({ timeout: 40_000 });
      await card("first").getByRole("button", { name: "Clone first" }).click();
      await dialog().getByLabel("Name").fill("second");
      await dialog().getByLabel("Port").fill(String(await freePort()));
      await dialog().getByRole("button", { name: "Clone", exact: true }).click();
      await card("second").getByText("Stopped", { exact: true }).waitFor();
      await card("second").getByRole("button", { name: "Start" }).click();
      await card("second").getByText("Running", { exact: true }).waitFor({ timeout: 30_000 });
      await card("first").getByRole("button", { name: "Archive first" }).click();
      await dialog().getByRole("button", { name: "Archive", exact: true }).click();
      await card("first").waitFor({ state: "detached" });
      await page.getByRole("button", { name: "Show archived" }).click();
      await card("first").getByRole("button", { name: "Unarchive" }).click();
      await card("first").getByText("Stopped", { exact: true }).waitFor();
      await card("first").getByRole("button", { name: "Archive first" }).click();
      await dialog().getByRole("button", { name: "Archive", exact: true }).click();
      await card("first").getByText("Archived", { exact: true }).waitFor();
      await card("first").getByRole("button", { name: "Delete" }).click();
      assert.equal(await dialog().getByRole("button", { name: "Delete" }).isEnabled(), false, "the name must be typed first");
      await shot(page, `delete-${look}`);
      await dialog().getByLabel(/Type/).fill("first");
      await dialog().getByRole("button", { name: "Delete" }).click();
      await card("first").waitFor({ state: "detached" });
      assert.deepEqual((await plane.api("/instances?include_archived=true")).instances.map((one) => one.name), ["second"]);
      await go("#/audit");
      for (const done of ["Instance created", "Instance started", "Instance cloned", "Instance archived", "Instance unarchived", "Instance deleted"]) {
        // Other entries may be in between, so each is searched.
        await page.getByRole("searchbox").fill(done);
        await page.getByRole("list").getByText(done).first().waitFor();
      }
      await page.getByRole("searchbox").fill("");
      await shot(page, `audit-${look}`);
    });
  });
}

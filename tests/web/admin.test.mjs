// Operator tasks on a real control plane: tokens, restart policy, import, teams and concurrent config changes.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { LOOKS, UNREACHABLE, Visit, barriers, launch, shot } from "./browser.mjs";
import { freePort } from "./daemon.mjs";
import { Plane, frontOf } from "./plane.mjs";

const CANARY = "canary-3b1f77";
let plane, front, browser, visit, page, main;
const go = (hash) => page.evaluate((to) => { location.hash = to; }, hash);
const dialog = () => page.getByRole("dialog");
const card = (name) => page.locator("main li", { has: page.getByRole("link", { name, exact: true }) });

before(async () => {
  plane = await new Plane().start();
  front = await frontOf(plane);
  main = await plane.api("/instances", "POST", { name: "main", port: await freePort() });
  await plane.api(`/instances/${main.id}/start`, "POST", {});
  browser = await launch();
});
after(async () => { await browser?.close(); front?.stop(); await plane?.remove(); });
beforeEach(async () => {
  visit = await Visit.of(browser, front.url);
  // The page is not logged in at first, and the socket of an instance closes when the instance stops.
  visit.expected = new RegExp(`401|${UNREACHABLE.source}`);
  page = visit.page;
  await page.getByLabel("Or paste the token").fill(plane.token);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { name: "Fleet" }).waitFor();
});
afterEach(() => visit.end());

/** Opens a page that is logged in with this token. */
async function enteredWith(secret, options) {
  const guest = await Visit.of(browser, front.url, options);
  // Only before the login. Afterwards the page makes no forbidden call.
  guest.expected = /401/;
  await guest.page.getByLabel("Or paste the token").fill(secret);
  await guest.page.getByRole("button", { name: "Log in" }).click();
  await guest.page.getByRole("heading", { name: "Fleet" }).waitFor();
  return guest;
}

describe("tokens", () => {
  it("are created with a scope, shown once, limited to that scope and revocable", async () => {
    await go("#/access");
    await page.getByText("No tokens yet").waitFor();
    await page.getByRole("button", { name: "New token" }).first().click();
    await dialog().getByLabel("Name").fill("<img src=x onerror=alert(1)> dashboard");
    await dialog().getByRole("button", { name: "Create" }).click();
    await dialog().getByText("It will not be shown again.").waitFor();
    await shot(page, "token-made");
    const secret = (await dialog().locator("pre, code").first().innerText()).trim();
    const call = (method, route) => fetch(`${plane.url}/api${route}`, { method, headers: { authorization: `Bearer ${secret}` } });
    assert.equal((await call("GET", "/instances")).status, 200);
    assert.equal((await call("POST", `/instances/${main.id}/stop`)).status, 403, "a read-only token cannot stop an instance");
    await dialog().getByRole("button", { name: "Close" }).last().click();
    const guest = await enteredWith(secret);
    const only = "Your login has read-only access.";
    await guest.page.getByRole("navigation").getByText(only).waitFor();
    for (const name of ["New instance", "Import", "Restart main", "Stop main", "Clone main", "Archive main"]) {
      const button = guest.page.getByRole("main").getByRole("button", { name, exact: true }).first();
      assert.deepEqual([await button.isDisabled(), await button.getAttribute("title")], [true, only], name);
    }
    for (const name of ["Tokens", "Audit"]) assert.equal(await guest.page.getByRole("navigation").getByRole("link", { name, exact: true }).count(), 0, name);
    // A read-only login shows a notice and still receives live updates.
    const looks = guest.page.getByText("This token is read-only.", { exact: false });
    const show = (hash) => guest.page.evaluate((to) => { location.hash = to; }, hash);
    await show(`#/i/${main.id}/sessions`);
    await looks.waitFor();
    await plane.api(`/instances/${main.id}/gateway/sessions`, "POST", { title: "Started meanwhile" });
    await guest.page.getByText("Started meanwhile").first().waitFor();
    await shot(guest.page, "may-only-look");
    for (const view of ["chat", "agents", "usage"]) {
      await show(`#/i/${main.id}/${view}`);
      await guest.page.waitForTimeout(1500);
      assert.equal(await guest.page.getByText(/Connection lost|No live connection|No connection to the server/).count(), 0, view);
    }
    await show(`#/i/${main.id}/chat`);
    await guest.page.getByPlaceholder(only).waitFor();
    assert.ok(await guest.page.getByRole("button", { name: "Send" }).isDisabled());
    await show("#/access");
    await guest.page.getByRole("main").getByText(only).waitFor();
    assert.equal(await guest.page.getByText("Loading…").count(), 0);
    assert.equal(await guest.page.getByRole("button", { name: "New token" }).count(), 0);
    await shot(guest.page, "tokens-refused");
    const row = page.locator("main li", { hasText: "dashboard" });
    await row.getByText("Read-only").waitFor();
    assert.ok(!(await page.content()).includes(secret), "the page no longer contains the token");
    await row.getByRole("button", { name: "Revoke" }).click();
    await dialog().getByRole("button", { name: "Revoke" }).click();
    await page.getByText("No tokens yet").waitFor();
    assert.equal((await call("GET", "/instances")).status, 401);
    await guest.page.reload();
    await guest.page.getByRole("heading", { name: "You are not logged in" }).waitFor();
    await guest.end();
    await page.getByRole("button", { name: "Show revoked" }).click();
    await row.getByText("Revoked", { exact: true }).waitFor();
  });

  it("with operate scope allow start, stop and chat and explain why other actions are disabled", async () => {
    const { secret } = await plane.api("/tokens", "POST", { name: "Night shift", scope: "operate" });
    const guest = await enteredWith(secret, LOOKS["phone-dark"]);
    const inMain = (name) => guest.page.getByRole("main").getByRole("button", { name, exact: true }).first();
    const show = (hash) => guest.page.evaluate((to) => { location.hash = to; }, hash);
    const only = "Your login can view, start, stop and chat, but cannot change anything else.";
    for (const name of ["Restart main", "Stop main"]) assert.ok(await inMain(name).isEnabled(), name);
    for (const name of ["New instance", "Clone main"]) assert.equal(await inMain(name).getAttribute("title"), only, name);
    await show(`#/i/${main.id}/agents`);
    await inMain("New agent").waitFor();
    assert.ok(await inMain("New agent").isDisabled());
    await show(`#/i/${main.id}/overview`);
    await guest.page.getByLabel("Automatic restart").waitFor();
    assert.ok(await guest.page.getByLabel("Automatic restart").isDisabled());
    await show(`#/i/${main.id}/chat`);
    await guest.page.getByRole("textbox", { name: "Message" }).fill("/help");
    await guest.page.keyboard.press("Enter");
    await guest.page.getByRole("log").getByText("/stop", { exact: false }).waitFor();
    await shot(guest.page, "may-operate");
    await guest.end();
  });
});

describe("instance", () => {
  it("saves the chosen restart policy", async () => {
    await go(`#/i/${main.id}/overview`);
    const choice = page.getByLabel("Automatic restart");
    assert.equal(await choice.inputValue(), "on-failure");
    await choice.selectOption("never");
    await page.getByText("Saved.").waitFor();
    assert.equal((await plane.api(`/instances/${main.id}`)).restart, "never");
    await page.reload();
    await page.waitForFunction(() => [...document.querySelectorAll("select")].some((one) => one.value === "never"));
  });

  it("is imported from OpenClaw after a preview, and only once", async () => {
    const home = path.join(plane.home, "their-claw");
    await mkdir(path.join(home, "workspace"), { recursive: true });
    await writeFile(path.join(home, "openclaw.json"), `{ agents: { list: [{ id: "ops" }] }, gateway: { port: 1, ${Array.from({ length: 20 }, (_, n) => `key${n}: 1`).join()} }, channels: { discord: { token: "${CANARY}" } } }`);
    const fill = async () => {
      await page.getByRole("button", { name: "Import", exact: true }).click();
      await dialog().getByLabel("Folder or openclaw.json").fill(home);
      await dialog().getByRole("button", { name: "Preview" }).click();
    };
    await fill();
    await dialog().getByText("gateway.port").waitFor();
    await dialog().getByText("channels.discord.token").waitFor();
    await dialog().getByText("1 agent, 0 channel accounts").waitFor();
    await shot(page, "import");
    assert.deepEqual(await barriers(page), [], "scrollable lists are reachable by keyboard");
    assert.ok(!(await page.content()).includes(CANARY));
    assert.equal((await plane.api("/instances")).instances.length, 1, "the preview creates no instance");
    await dialog().getByRole("button", { name: "Import", exact: true }).click();
    await card("their-claw").getByText("Stopped", { exact: true }).waitFor();
    await fill();
    await dialog().getByText("This was already imported.").waitFor();
    assert.equal(await dialog().getByRole("button", { name: "Import", exact: true }).isEnabled(), false);
    visit.expected = /401|404/;
    await dialog().getByLabel("Folder or openclaw.json").fill("/nowhere");
    await dialog().getByRole("button", { name: "Preview" }).click();
    await page.getByText("There is nothing to import at this location.").waitFor();
  });

  it("has teams that can be created on the page", async () => {
    await go(`#/i/${main.id}/teams`);
    await page.getByRole("button", { name: "New team" }).click();
    await dialog().getByLabel("Name").fill("release");
    await dialog().getByLabel("Purpose").fill("Gets it out of the door");
    await dialog().getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "release" }).waitFor();
    await page.getByText("Gets it out of the door").waitFor();
    visit.expected = /401|409/;
    await page.getByRole("button", { name: "New team" }).click();
    await dialog().getByLabel("Name").fill("release");
    await dialog().getByRole("button", { name: "Create" }).click();
    await page.getByText("A team with this name already exists.").waitFor();
  });
});

describe("config", () => {
  const save = async (where) => {
    await where.getByRole("button", { name: "Review and save" }).click();
    await where.getByRole("dialog").getByRole("button", { name: "Save", exact: true }).click();
  };
  const type = async (where, text) => {
    await where.locator(".cm-content").click();
    await where.keyboard.press("Control+End");
    await where.keyboard.insertText(text);
    await where.getByText("Valid", { exact: true }).waitFor();
  };

  it("shows a conflict to the second of two editors, who chooses the version", async () => {
    visit.expected = /401|412|WebSocket/;
    await go(`#/i/${main.id}/config`);
    await page.locator(".cm-content").waitFor();
    const other = await visit.open(`${front.url}/#/i/${main.id}/config`);
    await other.locator(".cm-content").waitFor();
    await type(page, "\n[turns]\nmax_rounds = 21\n");
    await save(page);
    await page.getByText("The running instance uses the new config.").waitFor();
    await type(other, "\n[memory]\n");
    await save(other);
    await other.getByText("Someone else saved first").waitFor();
    assert.ok((await plane.api(`/instances/${main.id}/config`)).toml.includes("max_rounds = 21"), "nothing was overwritten");
    await other.getByRole("button", { name: "Use theirs" }).click();
    await other.locator(".cm-line", { hasText: "max_rounds = 21" }).waitFor();
    assert.equal(await other.locator(".cm-line", { hasText: "[memory]" }).count(), 0);
  });

  it("marks the line of a TOML error and keeps unsaved changes across views", async () => {
    await go(`#/i/${main.id}/config`);
    await page.locator(".cm-content").waitFor();
    const lines = (await plane.api(`/instances/${main.id}/config`)).toml.split("\n").length;
    await page.locator(".cm-content").click();
    await page.keyboard.press("Control+End");
    await page.keyboard.insertText("[turns\n");
    await page.getByText(new RegExp(`Line ${lines}:`)).waitFor();
    await page.locator(".cm-lint-marker-error").waitFor();
    assert.equal(await page.getByText("JSON").count(), 0);
    await shot(page, "config-no-toml");
    await go("#/fleet");
    await page.getByText("Your config changes are not saved.", { exact: false }).waitFor();
    await go(`#/i/${main.id}/config`);
    await page.getByText("You have unsaved changes.", { exact: false }).waitFor();
    await page.locator(".cm-line", { hasText: /^\[turns$/ }).waitFor();
    await page.getByText(new RegExp(`Line ${lines}:`)).waitFor();
    await page.locator(".cm-content").focus();
    for (const key of ["Escape", "Tab"]) await page.keyboard.press(key);
    assert.equal(await page.evaluate(() => document.activeElement?.shadowRoot?.activeElement?.className ?? ""), "", "Escape and Tab leave the editor, as its hint says");
    await page.getByRole("button", { name: "Discard changes" }).click();
    await page.locator(".cm-line", { hasText: /^\[turns$/ }).waitFor({ state: "detached" });
  });

  it("is rolled back with a reason if the running instance refuses it", async () => {
    visit.expected = /401|409|WebSocket/;
    // The instance already has an agent of that name, which a check of the file cannot detect.
    await plane.api(`/instances/${main.id}/gateway/agents`, "POST", { agent_id: "made", name: "Made" });
    await go(`#/i/${main.id}/config`);
    await page.locator(".cm-content").waitFor();
    await type(page, "# a note\n");
    await save(page);
    await page.getByText("The running instance uses the new config.").waitFor();
    const kept = (await plane.api(`/instances/${main.id}/config`)).toml;
    await type(page, '\n[[agents.list]]\nid = "other"\nname = "Made"\n');
    await save(page);
    await page.getByText("The previous config was restored", { exact: false }).first().waitFor();
    assert.equal(await page.getByText("The running instance uses the new config.").count(), 0, "the notice of the earlier save is gone");
    await shot(page, "config-put-back");
    assert.equal((await plane.api(`/instances/${main.id}/config`)).toml, kept);
    assert.equal((await plane.api(`/instances/${main.id}`)).status, "running");
  });
});

// The command center on a real control plane with real instances.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { UNREACHABLE, Visit, launch, shot } from "./browser.mjs";
import { freePort } from "./daemon.mjs";
import { Model, says } from "./model.mjs";
import { Plane, frontOf } from "./plane.mjs";

describe("on a real control plane", () => {
  let plane, front, model, browser, visit, page;
  const card = (name) => page.locator("main li", { has: page.getByRole("link", { name, exact: true }) });
  const dialog = () => page.getByRole("dialog");
  const go = (hash) => page.evaluate((to) => { location.hash = to; }, hash);

  before(async () => {
    model = await new Model().start();
    plane = await new Plane().start();
    front = await frontOf(plane);
    browser = await launch();
    visit = await Visit.of(browser, front.url);
    // Not logged in at first; and the socket of an instance ends with it.
    visit.expected = new RegExp(`401|${UNREACHABLE.source}`);
    page = visit.page;
  });
  after(async () => {
    try { await visit?.end(); } finally { await browser?.close(); front?.stop(); await plane?.remove(); model?.stop(); }
  });

  it("makes an instance, configures it, talks to it, reads its log, and removes it again", async () => {
    await page.getByLabel("Or paste the token").fill(plane.token);
    await page.getByRole("button", { name: "Enter" }).click();
    await page.getByRole("button", { name: "New instance" }).first().click();
    await dialog().getByLabel("Name").fill("first");
    await dialog().getByLabel("Port").fill(String(await freePort()));
    await dialog().getByRole("button", { name: "New instance" }).click();
    await card("first").getByText("running", { exact: true }).waitFor({ timeout: 30_000 });
    const [{ id }] = (await plane.api("/instances")).instances;

    await go(`#/i/${id}/config`);
    await page.locator(".cm-content").click();
    await page.keyboard.press("Control+End");
    await page.keyboard.insertText(`\n[providers.scripted]\nkind = "openai_compatible"\nbase_url = "${model.url}"\nmodels = ["steady"]\nprot = 1\n`);
    await page.getByText("1 to mend").waitFor();
    await page.keyboard.press("Control+End");
    for (let n = 0; n < "prot = 1\n".length; n += 1) await page.keyboard.press("Backspace");
    await page.getByText("Valid", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Review and save" }).click();
    await dialog().getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("the running instance works with it").waitFor();

    model.answer = says("Through the real gateway.");
    await go(`#/i/${id}/agents/%2B`);
    await page.getByLabel("Id *").fill("talker");
    await page.getByLabel("Name *").fill("Talker");
    await page.getByLabel("Model", { exact: true }).first().selectOption("scripted/steady");
    await page.getByRole("button", { name: "Create agent" }).click();
    await page.getByRole("link", { name: "Talker" }).waitFor();
    await page.waitForURL(/agents\/talker$/);
    await go(`#/i/${id}/chat`);
    await page.getByRole("combobox", { name: "Agent", exact: true }).selectOption("talker");
    await page.getByRole("textbox", { name: "Message" }).fill("Hello");
    await page.keyboard.press("Enter");
    await page.getByRole("log").getByText("Through the real gateway.").waitFor({ timeout: 20_000 });
    await shot(page, "plane-chat");
    await go(`#/i/${id}/logs`);
    await page.getByRole("list", { name: "Logs" }).getByText("ready", { exact: false }).first().waitFor();

    await go("#/fleet");
    await card("first").getByRole("button", { name: "Stop" }).click();
    await dialog().getByRole("button", { name: "Stop" }).click();
    await card("first").getByText("stopped", { exact: true }).waitFor({ timeout: 40_000 });
    await card("first").getByRole("button", { name: "Archive first?" }).click();
    await dialog().getByRole("button", { name: "Archive", exact: true }).click();
    await page.getByRole("button", { name: "Show archived" }).click();
    await card("first").getByRole("button", { name: "Delete" }).click();
    await dialog().getByLabel(/Type/).fill("first");
    await dialog().getByRole("button", { name: "Delete" }).click();
    await card("first").waitFor({ state: "detached" });
    await go("#/audit");
    await page.getByText("instance deleted").waitFor();
    assert.deepEqual((await plane.api("/instances?include_archived=true")).instances, []);
  });
});

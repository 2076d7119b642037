// Complete workflow by keyboard: create, start, chat, approve, stop.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { LOOKS, UNREACHABLE, Visit, launch, shot } from "./browser.mjs";
import { scripted } from "./fixture.mjs";
import { freePort } from "./daemon.mjs";
import { Model, followsTool } from "./model.mjs";
import { Plane, frontOf, until } from "./plane.mjs";

let browser, plane, front, model;
before(async () => { browser = await launch(); model = await new Model().start(); plane = await new Plane().start(); front = await frontOf(plane); });
after(async () => { await browser?.close(); front?.stop(); await plane?.remove(); model?.stop(); });

/** Presses a key until the target has the focus. */
async function reach(page, target, key = "Tab") {
  await target.waitFor();
  for (let step = 0; step < 120; step += 1) {
    if (await target.evaluate((node) => node === document.activeElement)) return;
    await page.keyboard.press(key);
  }
  assert.fail(`not reachable by ${key}: ${target}`);
}
async function press(page, target) { await reach(page, target); await page.keyboard.press("Enter"); }

describe("keyboard only", () => {
  it("creates and starts an instance, chats, approves a tool and stops the instance", async () => {
    const visit = await Visit.of(browser, front.url + await plane.link(), LOOKS["desktop-dark"]);
    visit.expected = UNREACHABLE;
    const { page } = visit;
    const dialog = page.getByRole("dialog");
    const button = (name, where = page) => where.getByRole("button", { name, exact: true }).first();
    await press(page, button("New instance"));
    await reach(page, dialog.getByLabel("Name"));
    await page.keyboard.type("by-hand");
    await reach(page, dialog.getByLabel("Port"));
    await page.keyboard.type(String(await freePort()));
    await reach(page, dialog.getByRole("checkbox"));
    if (await dialog.getByRole("checkbox").isChecked()) await page.keyboard.press("Space");
    await press(page, button("Create", dialog));
    await page.getByRole("link", { name: "by-hand", exact: true }).waitFor();
    const [{ id }] = (await plane.api("/instances")).instances;
    const { providers, models, agents, tools } = scripted(model);
    delete providers.scripted.api_key;
    await plane.configure(id, { providers, models, agents, tools });
    await press(page, button("Start by-hand"));
    await until("the instance runs", async () => (await plane.api(`/instances/${id}`)).status === "running", 30_000);
    await page.keyboard.press("Control+k");
    await page.keyboard.type("chat");
    await page.keyboard.press("Enter");
    model.answer = async function* (asked) {
      if (followsTool(asked)) yield { text: "Done by hand." };
      else yield { call: { id: "call-1", name: "shell", arguments: { command: "echo hand" } } };
    };
    await reach(page, page.getByRole("textbox", { name: "Message" }));
    await page.keyboard.type("Run it");
    await page.keyboard.press("Enter");
    await page.getByText("Approval needed: shell").waitFor();
    await shot(page, "keyboard-asks");
    await press(page, button("Allow"));
    await page.getByRole("log").getByText("Done by hand.").waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.type("fleet");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Fleet" }).waitFor();
    await press(page, button("Stop by-hand"));
    await press(page, button("Stop", dialog));
    await until("the instance is stopped", async () => (await plane.api(`/instances/${id}`)).status === "stopped", 40_000);
    await page.locator("main").getByText("Stopped", { exact: true }).waitFor();
    await visit.end();
  });
});

// Messages between real instances: diagrams, resent dead letters, filters and routing rules.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { LOOKS, Visit, barriers, launch, shot, sticksOut } from "./browser.mjs";
import { furnish, world } from "./fixture.mjs";
import { until } from "./plane.mjs";

let set, browser;
before(async () => { set = await world(); await furnish(set); browser = await launch(); });
after(async () => { await browser?.close(); await set?.end(); });

for (const [look, options] of Object.entries(LOOKS)) {
  describe(`${look}: messages between instances`, () => {
    const enter = async (hash) => {
      const visit = await Visit.of(browser, await set.link(), options);
      await visit.page.getByRole("heading", { name: "Fleet" }).waitFor();
      await visit.page.evaluate((to) => { location.hash = to; }, hash);
      return visit;
    };

    it("are drawn as a sequence diagram that is usable by keyboard", async () => {
      const visit = await enter(`#/i/${set.main.id}/messages`);
      const { page } = visit;
      const dialog = page.getByRole("dialog");
      await page.getByRole("button", { name: /task\.result/ }).first().click();
      await dialog.getByRole("group", { name: "Sequence diagram" }).waitFor();
      const arrows = dialog.locator("svg g[role=button]");
      await until("all messages of the conversation are drawn", async () => await arrows.count() >= 2);
      await shot(page, `sequence-${look}`);
      await arrows.first().focus();
      await page.keyboard.press("Space");
      await dialog.getByRole("heading", { name: "task.handoff" }).waitFor();
      await dialog.getByText("Compare the three papers").waitFor();
      assert.ok((await dialog.locator("pre").boundingBox()).height > 40, "long content scrolls instead of being squeezed");
      assert.deepEqual(await barriers(page), []);
      assert.ok(await sticksOut(page) <= 0);
      await visit.end();
    });

    it("can be resent as dead letters and arrive when the recipient runs", async () => {
      const { plane, main, lab } = set;
      const sent = await plane.api("/messages", "POST", { from: main.id, to: lab.id, type: "note.short", payload: { text: "Again" }, correlation_id: look });
      await until("the message is a dead letter", async () => (await plane.api(`/messages/${sent.id}`)).state === "dead_letter");
      const visit = await enter(`#/i/${main.id}/messages`);
      const { page } = visit;
      await page.getByRole("tab", { name: "Dead letters" }).click();
      await page.getByRole("listitem").getByRole("button", { name: new RegExp(look) }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("it expired", { exact: false }).first().waitFor();
      await plane.act(lab.id, "start");
      await until("the recipient answers", async () => (await fetch(`http://127.0.0.1:${lab.port}/health`).catch(() => null))?.ok);
      set.model.answer = async function* () { yield { text: "Thank you." }; };
      await dialog.getByRole("button", { name: "Resend" }).click();
      await page.getByText("The message was resent.").waitFor();
      // The message expires after a few seconds, so on a busy machine it may become a dead letter again.
      await until("the message is acknowledged", async () => {
        const { state } = await plane.api(`/messages/${sent.id}`);
        if (state === "dead_letter") await plane.call(`/messages/${sent.id}/replay`, "POST", {});
        return state === "acknowledged";
      }, 40_000);
      await dialog.getByText("Acknowledged", { exact: false }).first().waitFor();
      await shot(page, `replayed-${look}`);
      await page.keyboard.press("Escape");
      await page.getByRole("listitem").getByRole("button", { name: new RegExp(look) }).waitFor({ state: "detached" });
      // Calls to an instance that is just stopping may fail.
      visit.expected = /gateway\/\w+$/;
      await plane.act(lab.id, "stop");
      await visit.end();
    });

    it("are filtered on the server by state, type and time", async () => {
      const visit = await enter("#/messages");
      const { page } = visit;
      const rows = page.getByRole("list", { name: "Messages" }).or(page.getByRole("list").last()).getByRole("listitem");
      await page.getByRole("button", { name: /task\.handoff/ }).first().waitFor();
      const asked = page.waitForRequest((request) => /api\/messages\?.*state=dead_letter/.test(request.url()));
      await page.getByLabel("State").selectOption("dead_letter");
      await asked;
      await page.getByRole("button", { name: /task\.handoff/ }).first().waitFor({ state: "detached" });
      await page.getByLabel("State").selectOption("");
      await page.getByLabel("Type").fill("task.result");
      await page.getByRole("button", { name: /task\.handoff/ }).first().waitFor({ state: "detached" });
      await page.getByRole("button", { name: /task\.result/ }).first().waitFor();
      await page.getByLabel("Type").fill("no.such.type");
      await page.getByText("No matching messages").waitFor();
      await page.getByLabel("Type").fill("");
      await page.getByLabel("Time range").selectOption("1h");
      await page.getByRole("button", { name: /task\.handoff/ }).first().waitFor();
      assert.ok(await rows.count() > 0);
      await shot(page, `messages-filters-${look}`);
      assert.ok(await sticksOut(page) <= 0);
      await visit.end();
    });

    it("require a routing rule, which can be created and deleted", async () => {
      const visit = await enter("#/messages");
      visit.expected = /409/;
      const { page } = visit;
      const type = `${look.replace("-", ".")}.*`;
      await page.getByRole("tab", { name: "Rules" }).click();
      const make = async () => { await page.getByLabel("From").selectOption({ label: "research-lab" }); await page.getByLabel("To", { exact: true }).selectOption({ label: "main" }); await page.getByLabel("Type").fill(type); await page.getByRole("button", { name: "Allow" }).click(); };
      await make();
      await page.getByText(type, { exact: true }).waitFor();
      await make();
      await page.getByText("This rule already exists.").waitFor();
      await shot(page, `rules-${look}`);
      await page.getByRole("listitem").filter({ hasText: type }).getByRole("button", { name: "Delete rule?" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
      await page.getByText(type, { exact: true }).waitFor({ state: "detached" });
      await visit.end();
    });
  });
}

// Messages between real instances: as a picture, dead and sent again, by rules, and looked for.
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

    it("are drawn from asked to answered, by keyboard too", async () => {
      const visit = await enter(`#/i/${set.main.id}/messages`);
      const { page } = visit;
      const dialog = page.getByRole("dialog");
      await page.getByRole("button", { name: /task\.result/ }).first().click();
      await dialog.getByRole("group", { name: "Conversation diagram" }).waitFor();
      const arrows = dialog.locator("svg g[role=button]");
      await until("all that belong together are drawn", async () => await arrows.count() >= 2);
      await shot(page, `sequence-${look}`);
      await arrows.first().focus();
      await page.keyboard.press("Space");
      await dialog.getByRole("heading", { name: "task.handoff" }).waitFor();
      await dialog.getByText("Compare the three papers").waitFor();
      assert.ok((await dialog.locator("pre").boundingBox()).height > 40, "what does not fit is scrolled to, and not pressed together");
      assert.deepEqual(await barriers(page), []);
      assert.ok(await sticksOut(page) <= 0);
      await visit.end();
    });

    it("that are dead are sent again, and arrive when somebody is there", async () => {
      const { plane, main, lab } = set;
      const sent = await plane.api("/messages", "POST", { from: main.id, to: lab.id, type: "note.short", payload: { text: "Again" }, correlation_id: look });
      await until("it is dead", async () => (await plane.api(`/messages/${sent.id}`)).state === "dead_letter");
      const visit = await enter(`#/i/${main.id}/messages`);
      const { page } = visit;
      await page.getByRole("tab", { name: "Dead letters" }).click();
      await page.getByRole("listitem").getByRole("button", { name: new RegExp(look) }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("it expired", { exact: false }).first().waitFor();
      await plane.act(lab.id, "start");
      await until("somebody is there", async () => (await fetch(`http://127.0.0.1:${lab.port}/health`).catch(() => null))?.ok);
      set.model.answer = async function* () { yield { text: "Thank you." }; };
      await dialog.getByRole("button", { name: "Resend" }).click();
      await page.getByText("The message was resent.").waitFor();
      // It lives for a few seconds only, and where all are busy it may die once more.
      await until("it is taken up", async () => {
        const { state } = await plane.api(`/messages/${sent.id}`);
        if (state === "dead_letter") await plane.call(`/messages/${sent.id}/replay`, "POST", {});
        return state === "acknowledged";
      }, 40_000);
      await dialog.getByText("Acknowledged", { exact: false }).first().waitFor();
      await shot(page, `replayed-${look}`);
      await page.keyboard.press("Escape");
      await page.getByRole("listitem").getByRole("button", { name: new RegExp(look) }).waitFor({ state: "detached" });
      // Whoever asks an instance in the moment it ends is told that it does not answer.
      visit.expected = /gateway\/\w+$/;
      await plane.act(lab.id, "stop");
      await visit.end();
    });

    it("are found by state, type and time, where the server looks", async () => {
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

    it("need a rule, which is made and taken away", async () => {
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

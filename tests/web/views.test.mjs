// Every view of the command center in each size and theme: rendered, accessible and within the viewport.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { LOOKS, Visit, barriers, launch, shot, sticksOut } from "./browser.mjs";
import { furnish, question, world } from "./fixture.mjs";
import { until } from "./plane.mjs";

let set, browser, sessions, asked;

/** The address of each view, the text it shows, and the tab to open. */
const views = () => {
  const i = `#/i/${set.main.id}`;
  const chat = encodeURIComponent(sessions.find((one) => one.title === "What is in my folder?").session_key);
  return {
    fleet: ["#/fleet", "research-lab"],
    approvals: ["#/approvals", "rm -r build"],
    between: ["#/messages", "task.handoff"],
    audit: ["#/audit", "Instance unarchived"],
    access: ["#/access", "Grafana"],
    overview: [`${i}/overview`, "scripted/steady"],
    chat: [`${i}/chat/${chat}`, "Your folder is"],
    "chat-new": [`${i}/chat`, "What would you like to do?"],
    "chat-ask": [`${i}/chat/${encodeURIComponent(asked)}`, "Approval needed"],
    sessions: [`${i}/sessions`, "Plan the week"],
    session: [`${i}/sessions/${chat}`, "Let me look."],
    agents: [`${i}/agents/research`, "You read carefully."],
    files: [`${i}/agents/research`, "The instructions that this agent gets in every turn", "Files"],
    route: [`${i}/agents/%3F`, "Nothing is sent."],
    teams: [`${i}/teams/release`, "Build for Linux and macOS"],
    graph: [`${i}/teams/release`, "Build for Linux and macOS", "Dependencies"],
    messages: [`${i}/messages`, "task.handoff"],
    logs: [`${i}/logs`, "message accepted"],
    config: [`${i}/config`, "openai_compatible"],
    usage: [`${i}/usage`, "Model calls"],
    events: [`${i}/events`, "Approval requested"],
    nowhere: ["#/nowhere", "Page not found"],
  };
};

before(async () => {
  set = await world();
  await furnish(set);
  asked = await question(set);
  sessions = (await set.main.api("/sessions")).sessions;
  for (const action of ["archive", "unarchive"]) await set.plane.act(set.lab.id, action);
  browser = await launch();
});
after(async () => { await browser?.close(); await set?.end(); });

for (const [look, options] of Object.entries(LOOKS)) {
  describe(`in ${look}`, () => {
    it("renders every view, accessible and within the viewport", async () => {
      const visit = await Visit.of(browser, await set.link(), options);
      const { page } = visit;
      const found = [];
      const waiting = new Set();
      page.on("request", (request) => waiting.add(request));
      for (const end of ["requestfinished", "requestfailed"]) page.on(end, (request) => waiting.delete(request));
      await page.locator("main").getByText("research-lab").waitFor();
      for (const [name, [address, text, tab]] of Object.entries(views())) {
        await page.evaluate((hash) => { location.hash = hash; }, address);
        if (tab) await page.getByRole("tab", { name: tab }).click();
        // `input` and `textarea` hold their text as a value.
        await page.waitForFunction((wanted) => {
          const inside = (root) => (root.textContent ?? "").includes(wanted) || [...root.querySelectorAll("*")].some((node) => node.value?.includes?.(wanted) || (node.shadowRoot && inside(node.shadowRoot)));
          return inside(document.querySelector("main"));
        }, text).catch(() => assert.fail(`${name} does not show "${text}"`));
        await until("no request is pending", () => waiting.size === 0);
        await page.waitForFunction(() => document.getAnimations().every((one) => one.playState === "finished" || one.effect.getTiming().iterations === Infinity));
        await shot(page, `${name}-${look}`);
        found.push(...(await barriers(page)).map((one) => `${name}: ${one}`));
        if (await page.locator("main").evaluate((node) => node.scrollTop) > 0) found.push(`${name} is not scrolled to its top`);
        if (await sticksOut(page) > 0) found.push(`${name} is wider than the viewport`);
      }
      await visit.end();
      assert.deepEqual(found, []);
    });
  });
}

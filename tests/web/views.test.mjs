// Every view of the command center, in both themes and on a phone: seen, without barriers, and inside its page.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { DESKTOP, PHONE, Visit, barriers, launch, shot, sticksOut } from "./browser.mjs";
import { furnish, question, world } from "./fixture.mjs";

const LOOKS = {
  light: { ...DESKTOP, colorScheme: "light" },
  dark: { ...DESKTOP, colorScheme: "dark" },
  phone: { ...PHONE, colorScheme: "light" },
};
let set, browser, sessions, asked;

/** Where each view is, and what it shows when it is there. */
const views = () => {
  const i = `#/i/${set.main.id}`;
  const chat = encodeURIComponent(sessions.find((one) => one.title === "What is in my folder?").session_key);
  return {
    fleet: ["#/fleet", "research-lab"],
    approvals: ["#/approvals", "rm -r build"],
    between: ["#/messages", "task.handoff"],
    audit: ["#/audit", "instance brought back"],
    access: ["#/access", "Grafana"],
    overview: [`${i}/overview`, "scripted/steady"],
    chat: [`${i}/chat/${chat}`, "Your folder is"],
    "chat-new": [`${i}/chat`, "What shall we do?"],
    "chat-ask": [`${i}/chat/${encodeURIComponent(asked)}`, "Permission needed"],
    sessions: [`${i}/sessions`, "Plan the week"],
    session: [`${i}/sessions/${chat}`, "Let me look."],
    agents: [`${i}/agents/research`, "You read carefully."],
    route: [`${i}/agents/%3F`, "Nothing is sent."],
    teams: [`${i}/teams`, "Build for Linux and macOS"],
    messages: [`${i}/messages`, "task.handoff"],
    logs: [`${i}/logs`, "message accepted"],
    config: [`${i}/config`, "openai_compatible"],
    usage: [`${i}/usage`, "Calls of models"],
    events: [`${i}/events`, "permission asked"],
    nowhere: ["#/nowhere", "Nothing is here"],
  };
};

before(async () => {
  set = await world();
  await furnish(set);
  asked = await question(set);
  sessions = (await set.daemon.api("GET", "/sessions")).sessions;
  for (const action of ["archive", "unarchive"]) await fetch(`${set.control.url}/api/instances/${set.lab.id}/${action}`, { method: "POST", headers: { authorization: "Bearer a-control-token-for-tests-0123456789" } });
  browser = await launch();
});
after(async () => { await browser?.close(); await set?.end(); });

for (const [look, options] of Object.entries(LOOKS)) {
  describe(`in ${look}`, () => {
    it("shows every view, without barriers, inside its page", async () => {
      const visit = await Visit.of(browser, set.control.link(), options);
      const { page } = visit;
      const found = [];
      await page.locator("main").getByText("research-lab").waitFor();
      for (const [name, [address, text]] of Object.entries(views())) {
        await page.evaluate((hash) => { location.hash = hash; }, address);
        // `input` and `textarea` hold their text as a value.
        await page.waitForFunction((wanted) => {
          const inside = (root) => (root.textContent ?? "").includes(wanted) || [...root.querySelectorAll("*")].some((node) => node.value?.includes?.(wanted) || (node.shadowRoot && inside(node.shadowRoot)));
          return inside(document.querySelector("main"));
        }, text).catch(() => assert.fail(`${name} does not show "${text}"`));
        await pause(250);
        await shot(page, `${name}-${look}`);
        found.push(...(await barriers(page)).map((one) => `${name}: ${one}`));
        if (await sticksOut(page) > 0) found.push(`${name} sticks out of the page`);
      }
      await visit.end();
      assert.deepEqual(found, []);
    });
  });
}

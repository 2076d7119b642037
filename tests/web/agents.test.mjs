// Agents: their own workspace files with concurrent edits, and their skills with the deciding rule.
import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, it } from "node:test";
import { LOOKS, Visit, launch, shot, sticksOut } from "./browser.mjs";
import { Daemon } from "./daemon.mjs";
import { frontOf } from "./front.mjs";
import { Model, lastUserText } from "./model.mjs";

let model, daemon, front, browser;
before(async () => {
  model = await new Model().start();
  daemon = await Daemon.start(model.url);
  front = await frontOf(daemon);
  browser = await launch();
  await mkdir(path.join(daemon.home, "workspace"), { recursive: true });
  await writeFile(path.join(daemon.home, "workspace/SOUL.md"), "Be kind to everybody.");
  for (const name of ["weather", "tides"]) {
    await mkdir(path.join(daemon.home, "skills", name), { recursive: true });
    await writeFile(path.join(daemon.home, "skills", name, "SKILL.md"), `---\nname: ${name}\ndescription: About ${name}.\n---\nLook at it.\n`);
  }
});
after(async () => { await browser?.close(); front?.stop(); await daemon?.remove(); model?.stop(); });

async function enter(options, hash) {
  const { code } = await daemon.api("POST", "/logins");
  const visit = await Visit.of(browser, `${front.url}/?code=${code}`, options);
  await visit.page.goto(`${front.url}/app/${hash}`);
  visit.faults.length = 0;
  return visit;
}

for (const [look, options] of Object.entries(LOOKS)) {
  describe(`${look}: agent`, () => {
    const id = `a-${look}`;
    const own = () => path.join(daemon.home, "workspace/agents", id, "SOUL.md");
    before(() => daemon.api("POST", "/agents", { agent_id: id, name: `Agent ${look}`, policy: { skills: { deny: ["tides"] } } }));

    it("is shown next to the list on desktops and alone on phones", async () => {
      const visit = await enter(options, "#/i/this/agents");
      const { page } = visit;
      const list = page.getByRole("list", { name: "Agents" });
      await list.getByRole("link", { name: `Agent ${look}` }).click();
      await page.getByLabel("Name *").waitFor();
      assert.equal(await list.isVisible(), look.startsWith("desktop"));
      if (look.startsWith("phone")) await page.getByRole("main").getByRole("button", { name: "Agents" }).click();
      await list.waitFor();
      await visit.end();
    });

    it("uses its own file, and a conflicting edit must be confirmed", async () => {
      const visit = await enter(options, `#/i/this/agents/${id}`);
      const { page } = visit;
      await page.getByRole("tab", { name: "Files" }).click();
      await page.getByLabel("File", { exact: true }).selectOption("SOUL");
      await page.getByText("Shared file", { exact: true }).waitFor();
      await page.getByRole("button", { name: "Start from the shared file" }).click();
      const text = page.getByLabel("This agent's SOUL.md");
      assert.equal(await text.inputValue(), "Be kind to everybody.");
      await text.fill(`Be brief, ${look}. <b>`);
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("Own file", { exact: true }).waitFor();
      assert.equal(await readFile(own(), "utf8"), `Be brief, ${look}. <b>`);
      const seen = [];
      model.answer = async function* (asked) { seen.push(JSON.stringify(asked.messages[0]), lastUserText(asked)); yield { text: "Yes." }; };
      const { session_key } = await daemon.api("POST", "/sessions", { agent: id });
      await daemon.api("POST", `/sessions/${encodeURIComponent(session_key)}/messages?wait=20`, { text: "Who are you?" });
      assert.ok(seen[0].includes(`Be brief, ${look}.`) && !seen[0].includes("Be kind"), seen[0]);
      visit.expected = /412/;
      await writeFile(own(), "By somebody else.");
      await text.fill("Mine, in the end.");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("Someone else changed this file.", { exact: false }).waitFor();
      await shot(page, `overlay-conflict-${look}`);
      assert.equal(await readFile(own(), "utf8"), "By somebody else.", "nothing was overwritten");
      await page.getByRole("button", { name: "Overwrite with mine" }).click();
      await page.getByRole("button", { name: "Overwrite with mine" }).waitFor({ state: "detached" });
      assert.equal(await readFile(own(), "utf8"), "Mine, in the end.");
      await page.getByRole("main").getByRole("button", { name: "Delete" }).last().click();
      await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
      await page.getByText("Shared file", { exact: true }).waitFor();
      await assert.rejects(readFile(own(), "utf8"));
      assert.ok(await sticksOut(page) <= 0);
      await visit.end();
    });

    it("keeps unsaved file changes and offers a retry if a file cannot be read", async () => {
      const visit = await enter(options, `#/i/this/agents/${id}`);
      visit.expected = /500/;
      const { page } = visit;
      const file = async (name) => { await page.getByRole("tab", { name: "Files" }).click(); await page.getByLabel("File", { exact: true }).selectOption(name); };
      await file("USER");
      await page.getByLabel("This agent's USER.md").fill("Half a thought");
      await page.getByLabel("File", { exact: true }).selectOption("TOOLS");
      await page.getByText("USER.md is not saved.", { exact: false }).waitFor();
      await page.getByLabel("This agent's TOOLS.md").fill("Another");
      await page.evaluate(() => { location.hash = "#/i/this/usage"; });
      await page.getByRole("heading", { name: "Usage" }).waitFor();
      await page.evaluate((to) => { location.hash = to; }, `#/i/this/agents/${id}`);
      for (const [name, text] of [["TOOLS", "Another"], ["USER", "Half a thought"]]) {
        await file(name);
        assert.equal(await page.getByLabel(`This agent's ${name}.md`).inputValue(), text);
      }
      await page.route("**/SOUL.md", (route) => route.fulfill({ status: 500, body: "" }));
      await file("SOUL");
      const again = page.getByRole("main").getByRole("button", { name: "Try again" });
      await again.waitFor();
      await page.unroute("**/SOUL.md");
      await again.click();
      await page.getByLabel("This agent's SOUL.md").waitFor();
      await visit.end();
    });

    it("lists each skill with its permission and the reason", async () => {
      const visit = await enter(options, `#/i/this/agents/${id}`);
      const { page } = visit;
      await page.getByRole("tab", { name: "Skills" }).click();
      await page.locator("p", { hasText: "weather" }).getByText("No list is set, so all skills are allowed", { exact: false }).waitFor();
      await page.locator("p", { hasText: "tides" }).getByText("Denied by the agent's policy", { exact: false }).waitFor();
      await shot(page, `skills-${look}`);
      await visit.end();
    });
  });
}

describe("default agent", () => {
  it("can be edited on the page, with effect from its next turn", async () => {
    const visit = await enter({}, "#/i/this/agents/main");
    const { page } = visit;
    await page.getByText("No config file defines this agent.").waitFor();
    const prompt = page.getByLabel("System prompt", { exact: false }).first();
    assert.equal(await prompt.isEditable(), true);
    await prompt.fill("Answer as a sailor.");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved").first().waitFor();
    model.answer = async function* () { yield { text: "Aye." }; };
    const { session_key } = await daemon.api("POST", "/sessions", { title: "At sea" });
    await daemon.api("POST", `/sessions/${encodeURIComponent(session_key)}/messages?wait=20`, { text: "Hello" });
    assert.match(JSON.stringify(model.requests.at(-1).messages), /Answer as a sailor\./);
    assert.equal((await daemon.api("GET", "/agents/main")).source, "default");
    await page.reload();
    await page.getByText("No config file defines this agent.").waitFor();
    assert.equal(await prompt.inputValue(), "Answer as a sailor.");
    await shot(page, "agent-main");
    await visit.end();
  });

  it("is shown as read-only if a config file defines it", async () => {
    const written = await Daemon.start(model.url, undefined, '[[agents.list]]\nid = "main"\n');
    const ahead = await frontOf(written);
    try {
      const { code } = await written.api("POST", "/logins");
      const visit = await Visit.of(browser, `${ahead.url}/?code=${code}`);
      const { page } = visit;
      await page.goto(`${ahead.url}/app/#/i/this/agents/main`);
      await page.getByText("This agent is defined in config.toml").waitFor();
      const prompt = page.getByLabel("System prompt", { exact: false }).first();
      assert.equal(await prompt.isEditable(), false);
      const looks = await prompt.evaluate((node) => [getComputedStyle(node).borderStyle, getComputedStyle(node).cursor]);
      assert.deepEqual(looks, ["dashed", "not-allowed"]);
      assert.equal(await page.getByRole("button", { name: "Save" }).count(), 0);
      await shot(page, "agent-main-written");
      await visit.end();
    } finally { ahead.stop(); await written.remove(); }
  });
});

// The views of the control plane: instances, logs, config, messages, teams, audit.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { UNREACHABLE, Visit, launch, shot } from "./browser.mjs";
import { furnish, world } from "./fixture.mjs";
import { says } from "./model.mjs";

let set, browser, visit, page;
const go = (hash) => page.evaluate((to) => { location.hash = to; }, hash);
const ofMain = (view) => go(`#/i/${set.main.id}/${view}`);
const card = (name) => page.locator("main li", { has: page.getByRole("link", { name, exact: true }) });
const dialog = () => page.getByRole("dialog");

before(async () => { set = await world(); await furnish(set); browser = await launch(); });
after(async () => { await browser?.close(); await set?.end(); });
beforeEach(async () => {
  visit = await Visit.of(browser, set.control.link());
  page = visit.page;
  await page.getByRole("heading", { name: "Fleet" }).waitFor();
});
afterEach(() => visit.end());

describe("the fleet", () => {
  it("goes from made to gone: create, start, stop, clone, archive, bring back, delete", async () => {
    await page.getByRole("button", { name: "New instance" }).click();
    await dialog().getByLabel("Name").fill("night-shift");
    await dialog().getByRole("button", { name: "New instance" }).click();
    await card("night-shift").getByText("running", { exact: true }).waitFor();
    await card("night-shift").getByRole("button", { name: "Stop" }).click();
    await dialog().getByRole("button", { name: "Stop" }).click();
    await card("night-shift").getByText("stopped").waitFor();
    await card("night-shift").getByRole("button", { name: "Clone night-shift" }).click();
    await dialog().getByLabel("Name").fill("day-shift");
    await dialog().getByRole("button", { name: "Clone", exact: true }).click();
    await card("day-shift").waitFor();
    await card("night-shift").getByRole("button", { name: "Archive night-shift?" }).click();
    await dialog().getByRole("button", { name: "Archive", exact: true }).click();
    await card("night-shift").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Show archived" }).click();
    await card("night-shift").getByRole("button", { name: "Bring back" }).click();
    await card("night-shift").getByText("stopped").waitFor();
    await card("night-shift").getByRole("button", { name: "Archive night-shift?" }).click();
    await dialog().getByRole("button", { name: "Archive", exact: true }).click();
    await card("night-shift").getByText("archived").waitFor();
    await card("night-shift").getByRole("button", { name: "Delete" }).click();
    assert.equal(await dialog().getByRole("button", { name: "Delete" }).isEnabled(), false, "its name must be typed first");
    await shot(page, "fleet-delete");
    await dialog().getByLabel(/Type/).fill("night-shift");
    await dialog().getByRole("button", { name: "Delete" }).click();
    await card("night-shift").waitFor({ state: "detached" });
    await go("#/audit");
    for (const done of ["instance made", "instance started", "instance cloned", "instance archived", "instance deleted"]) await page.getByText(done).first().waitFor();
  });

  it("says a refusal in words, and in Chinese too", async () => {
    visit.expected = /409/;
    const create = async () => { await page.locator("main header button").last().click(); await dialog().locator("input").first().fill("main"); await dialog().locator("button[type=submit]").click(); };
    await create();
    await page.getByText("That name is taken.").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "中文" }).click();
    await create();
    await page.getByText("该名称已被使用。").waitFor();
  });

  it("shows at once what happens elsewhere", async () => {
    set.control.instances.start(set.lab);
    await card("research-lab").getByText("running", { exact: true }).waitFor();
    set.control.instances.crash(set.lab, "out of memory");
    await card("research-lab").getByText("out of memory").waitFor();
    set.control.instances.start(set.lab);
    await card("research-lab").getByText("running", { exact: true }).waitFor();
    set.control.instances.stop(set.lab);
  });

  it("says that the server is gone, asks by itself after three failures, and comes back with the truth", async () => {
    visit.expected = UNREACHABLE;
    await set.control.stop();
    await page.getByText("The connection is lost.").waitFor();
    await page.getByText("No live connection: this page asks every few seconds instead.").waitFor({ timeout: 20_000 });
    await shot(page, "fleet-polling");
    set.control.instances.start(set.lab);
    await set.control.again();
    await page.getByRole("button", { name: "Try now" }).click();
    await card("research-lab").getByText("running", { exact: true }).waitFor();
    await page.getByText("No live connection").waitFor({ state: "hidden" });
    set.control.instances.stop(set.lab);
  });

  it("says what is wrong with an address", async () => {
    await go("#/i/nobody/overview");
    await page.getByText("There is no instance “nobody”").waitFor();
  });
});

describe("through the gateway", () => {
  it("talks to an agent, live", async () => {
    set.model.answer = says("Through the gateway.");
    await ofMain("chat");
    await page.getByRole("textbox", { name: "Message" }).fill("Hello there");
    await page.keyboard.press("Enter");
    await page.getByRole("log").getByText("Through the gateway.").waitFor();
  });
});

describe("logs", () => {
  it("follow the end, search, filter by level, page from the beginning, and download", async () => {
    await ofMain("logs");
    await page.getByText("100 of 100 lines").waitFor();
    set.control.log(set.main.id, `${new Date().toISOString()} ERROR <b>something broke</b> loudly`);
    await page.getByText("<b>something broke</b> loudly").waitFor();
    await page.getByLabel("Level").selectOption("error");
    await page.getByRole("searchbox").fill("loudly");
    await page.getByText(/^1 of 101 lines/).waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    set.control.log(set.main.id, `${new Date().toISOString()} ERROR loudly again`);
    await page.getByRole("button", { name: "Go on" }).click();
    await page.getByText(/^2 of 102 lines/).waitFor();
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Download" }).click()]);
    assert.equal(file.suggestedFilename(), "main.log");
    await page.getByLabel("Level").selectOption("");
    await page.getByRole("searchbox").fill("");
    await page.getByRole("tab", { name: "From the beginning" }).click();
    await page.getByText(/of 402 lines/).waitFor();
  });

  it("scroll through a hundred thousand lines, of which few are in the page", async () => {
    set.control.log(set.lab.id, ...Array.from({ length: 100_000 }, (_, n) => `2026-01-01T00:00:00.000Z  INFO line number ${n}`));
    await go(`#/i/${set.lab.id}/logs`);
    await page.getByRole("tab", { name: "From the beginning" }).click();
    await page.getByText("line number 3", { exact: true }).waitFor();
    const list = page.getByRole("list", { name: "Logs" });
    const took = await scroll(list);
    console.log(`two frames of scrolling 100,000 lines: ${took.toFixed(1)} ms in the middle`);
    assert.ok(took < 150, `${took} ms`);
    assert.ok(await list.getByRole("listitem").count() < 120);
  });
});

/** How long two frames take while a list is scrolled, in the middle of many. */
const scroll = (list) => list.evaluate(async (node) => {
  const slow = [];
  for (let step = 0; step < 60; step += 1) {
    const start = performance.now();
    node.scrollTop += 900;
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    slow.push(performance.now() - start);
  }
  return slow.sort((a, b) => a - b)[30];
});

/** Writes at the end of the config in a page's editor. */
async function write(on, text) {
  const editor = on.locator(".cm-content");
  await editor.click();
  await on.keyboard.press("Control+End");
  await on.keyboard.insertText(text);
}
const save = async (on) => { await on.getByRole("button", { name: "Review and save" }).click(); await on.getByRole("dialog").getByRole("button", { name: "Save", exact: true }).click(); };

describe("config", () => {
  beforeEach(async () => { await ofMain("config"); await page.locator(".cm-content").waitFor(); });

  it("is checked while it is written, shown as a difference, saved, and asks for a restart where one is needed", async () => {
    assert.doesNotMatch(await page.locator(".cm-content").innerText(), /a-key-for-tests/);
    await write(page, "prot = 1\n");
    await page.getByText("unknown key 'prot'; did you mean 'port'?").waitFor();
    assert.equal(await page.getByRole("button", { name: "Review and save" }).isEnabled(), false);
    await shot(page, "config-errors");
    await page.getByRole("button", { name: "Undo my changes" }).click();
    await page.getByText("Valid", { exact: true }).waitFor();
    await write(page, "# a note\n");
    await page.getByRole("button", { name: "Review and save" }).click();
    await dialog().getByText("# a note").waitFor();
    await shot(page, "config-diff");
    await dialog().getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("the running instance works with it").waitFor();
    assert.match(set.control.configs.get(set.main.id).text, /a-key-for-tests[\s\S]*# a note/, "the mask kept the secret");
    await write(page, "[gateway]\nport = 18899\n");
    const text = set.control.configs.get(set.main.id).text;
    set.control.configs.get(set.main.id).text = text.replace("port = 18801", "# port");
    await save(page);
    await dialog().getByText("Somebody else saved meanwhile").waitFor();
    visit.expected = /412/;
  });

  it("shows both versions when two people save, and saves what was decided", async () => {
    visit.expected = /412/;
    const other = await visit.open(`${set.control.url}/#/i/${set.main.id}/config`);
    await other.locator(".cm-content").waitFor();
    await write(page, "# from the first page\n");
    await write(other, "# from the second page\n");
    await save(page);
    await page.getByText("Saved.").first().waitFor();
    await save(other);
    await other.getByText("Somebody else saved meanwhile").waitFor();
    await other.getByRole("dialog").getByText("# from the first page").first().waitFor();
    await other.getByRole("dialog").getByText("# from the second page").first().waitFor();
    await shot(other, "config-conflict");
    await other.getByRole("button", { name: "Save mine on top" }).click();
    await other.getByRole("dialog").getByRole("button", { name: "Save", exact: true }).click();
    await other.getByText("the running instance works with it").waitFor();
    assert.match(set.control.configs.get(set.main.id).text, /second page/);
    assert.doesNotMatch(set.control.configs.get(set.main.id).text, /first page/);
  });

  it("asks before a secret is written, and says that a config which does not load was taken back", async () => {
    visit.expected = /40\d/;
    await write(page, "[providers.other]\napi_key = \"new\"\n");
    await save(page);
    await page.getByRole("button", { name: "Write them" }).click();
    await page.getByText("Saved.").first().waitFor();
    assert.match(set.control.configs.get(set.main.id).text, /api_key = "new"/);
    await write(page, "# never-loads\n");
    await save(page);
    await page.getByText("The old one is back and in use.", { exact: false }).waitFor();
  });
});

describe("messages between instances", () => {
  it("are listed live, drawn as a picture, and sent again when dead", async () => {
    await ofMain("messages");
    await page.getByRole("tab", { name: "Dead letters" }).click();
    await page.getByRole("listitem").getByRole("button", { name: /task.handoff/ }).click();
    await dialog().getByText("5 attempts failed").first().waitFor();
    await dialog().getByRole("button", { name: "Send again" }).click();
    await page.getByText("It is on its way again.").waitFor();
    await page.keyboard.press("Escape");
    await page.getByText("No dead letters").waitFor();
    await page.getByRole("tab", { name: "All" }).click();
    await page.getByRole("button", { name: /response/ }).click();
    await dialog().getByRole("group", { name: "The conversation as a picture" }).waitFor();
    assert.equal(await dialog().locator("svg g[role=button]").count(), 3);
    await shot(page, "message-sequence");
    await page.keyboard.press("Escape");
    set.control.envelopes.send({ from: set.lab.id, to: set.main.id, type: "task.result", payload: {}, correlation_id: "c-99" });
    await page.getByRole("button", { name: /task.result/ }).waitFor();
  });

  it("need a rule, which can be made and taken away", async () => {
    visit.expected = /409/;
    await go("#/messages");
    await page.getByRole("tab", { name: "Rules" }).click();
    const make = async () => { await page.getByLabel("From").selectOption({ label: "research-lab" }); await page.getByLabel("To", { exact: true }).selectOption({ label: "main" }); await page.getByLabel("Type").fill("note.*"); await page.getByRole("button", { name: "Allow" }).click(); };
    await make();
    await page.getByText("note.*").waitFor();
    await make();
    await page.getByText("That rule is there already.").waitFor();
    await shot(page, "rules");
    await page.getByRole("listitem").filter({ hasText: "note.*" }).getByRole("button", { name: "Delete the rule?" }).click();
    await dialog().getByRole("button", { name: "Delete" }).click();
    await page.getByText("note.*").waitFor({ state: "detached" });
  });
});

describe("much of everything", () => {
  it("scrolls ten thousand sessions and five thousand tasks, of which few are in the page", async () => {
    const session = (n) => ({ session_key: `agent:main:web:dm:${n}`, session_id: `s${n}`, agent_id: "main", active_agent_id: "main", owner_session_key: n % 5 ? `agent:main:web:dm:${n - (n % 5)}` : null, spawn_depth: 0, delegation_depth: 0, lane: "main", channel: "web", status: "active", title: `Session ${n}`, queued: 0, running_turn_id: null, created_at: new Date(1e12).toISOString(), updated_at: new Date(1.7e12 - n * 1000).toISOString() });
    await page.route("**/gateway/sessions?*", (route) => {
      const query = new URL(route.request().url()).searchParams;
      const from = Number(query.get("cursor") ?? 0);
      const limit = from ? 2000 : Number(query.get("limit"));
      const body = { sessions: Array.from({ length: Math.min(limit, 10_000 - from) }, (_, n) => session(from + n)), next_cursor: from + limit < 10_000 ? String(from + limit) : null };
      return route.fulfill({ json: body });
    });
    await ofMain("sessions");
    const list = page.getByRole("list", { name: "Sessions" });
    await list.getByText("Session 3", { exact: true }).waitFor();
    for (let step = 0; step < 6; step += 1) { await list.evaluate((node) => { node.scrollTop = node.scrollHeight; }); await page.waitForTimeout(250); }
    const [rows, took] = [await list.evaluate((node) => Math.round(node.scrollHeight / 60)), await (list.evaluate((node) => { node.scrollTop = 0; }), scroll(list))];
    console.log(`two frames of scrolling ${rows} sessions: ${took.toFixed(1)} ms in the middle`);
    assert.ok(rows === 10_000 && took < 150, `${rows} rows, ${took} ms`);
    assert.ok(await list.getByRole("listitem").count() < 80);
    set.control.teams.add("crowd", []);
    for (let n = 0; n < 5000; n += 1) set.control.teams.addTask("crowd", { subject: `Task ${n}` });
    await ofMain("teams/crowd");
    const column = page.getByRole("list", { name: "to do" });
    await column.getByText("Task 4999").waitFor();
    const slow = await scroll(column);
    console.log(`two frames of scrolling 5,000 tasks: ${slow.toFixed(1)} ms in the middle`);
    assert.ok(slow < 150 && await column.getByRole("listitem").count() < 60, `${slow} ms`);
    set.control.teams.teams.pop();
  });
});

describe("teams", () => {
  it("are watched on the board, with what needs what, and get tasks, mail and an end", async () => {
    await ofMain("teams");
    await page.getByRole("button", { name: "Add task" }).click();
    await dialog().getByLabel("Subject").fill("Thank everybody");
    await dialog().getByRole("checkbox", { name: "Publish" }).check();
    await dialog().getByRole("button", { name: "Add task" }).click();
    await page.getByRole("button", { name: /Thank everybody/ }).waitFor();
    const task = set.control.teams.tasks.get("release").find((one) => one.subject === "Run the checks on both builds");
    Object.assign(task, { status: "completed", owner: "tester", summary: "All pass" });
    await page.getByRole("region", { name: "done" }).getByText("Run the checks on both builds").waitFor();
    await page.getByRole("tab", { name: "What needs what" }).click();
    assert.equal(await page.locator("svg path.edge").count(), 5);
    await shot(page, "teams-graph");
    await page.getByRole("tab", { name: /Mail/ }).click();
    await page.getByPlaceholder("Write to the team").fill("Well done <b>all</b>");
    await page.keyboard.press("Enter");
    await page.getByText("Well done <b>all</b>").waitFor();
    await page.getByRole("button", { name: "Shut down" }).click();
    await dialog().getByRole("button", { name: "Shut down" }).click();
    await page.getByText("shutting down", { exact: true }).waitFor();
  });
});

// The command center of a single instance without a control plane: the real binary, a scripted model, a real browser.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import { PHONE, Visit, launch, shot, sticksOut, stored } from "./browser.mjs";
import { Daemon, TOKEN } from "./daemon.mjs";
import { frontOf } from "./front.mjs";
import { Model, followsTool, gate, lastUserText, says } from "./model.mjs";
import { until } from "./plane.mjs";

let model, daemon, front, browser, visit, page;
/** An account that accepts messages from everyone, on an unreachable platform. */
const telegram = `[session]\ndm_scope = "per-channel-peer"\n[channels.telegram.default]\nbot_token = "1:t"\napi_url = "http://127.0.0.1:9"\ndm_policy = "open"\n`;

/** An agent that may delegate to another. */
const DELEGATION_CONFIG = `
[[agents.list]]
id = "main"
default = true
delegation = { allow_agents = ["expert"] }
[[agents.list]]
id = "expert"
name = "Expert"
`;

before(async () => {
  model = await new Model().start();
  daemon = await Daemon.start(model.url, undefined, telegram);
  front = await frontOf(daemon);
  browser = await launch();
  await daemon.api("POST", "/agents", { agent_id: "research", name: "Research", defaults: { system_prompt: "You read." } });
});
after(async () => { await browser?.close(); front?.stop(); await daemon?.remove(); model?.stop(); });
beforeEach(async () => { visit = await enter(); page = visit.page; });
afterEach(() => visit.end());

/** Logs in with a one-time code, like a link. */
async function enter(options = {}, hash = "#/i/this/chat") {
  const { code } = await daemon.api("POST", "/logins");
  const one = await Visit.of(browser, `${front.url}/?code=${code}`, options);
  // The link opens the small chat page, which other tests cover.
  await one.page.goto(`${front.url}/app/${hash}`);
  await one.page.locator("#main").waitFor();
  one.faults.length = 0;
  return one;
}
const composer = () => page.getByRole("textbox", { name: "Message" });
async function say(text) { await composer().fill(text); await composer().press("Enter"); }
const log = () => page.getByRole("log");
const see = (text) => log().getByText(text, { exact: true }).first().waitFor();
const count = (text) => log().getByText(text, { exact: true }).count();
const go = (hash) => page.evaluate((to) => { location.hash = to; }, hash);

describe("login", () => {
  it("asks for a link or token, with clear error messages", async () => {
    visit.expected = /401|ERR_FAILED/;
    await visit.context.clearCookies();
    await page.goto(`${front.url}/app/?code=used`);
    await page.reload();
    await page.getByRole("heading", { name: "You are not logged in" }).waitFor();
    await page.getByLabel("Or paste the token").fill("wrong");
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByText("The token is incorrect.").waitFor();
    await shot(page, "login-light");
    await page.getByLabel("Or paste the token").fill(TOKEN);
    await page.route("**/login", (route) => route.abort());
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByText("The server could not log in this browser. Try again.").waitFor();
    await page.unroute("**/login");
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("navigation").waitFor();
    assert.equal(page.url().includes("code=") || page.url().includes(TOKEN), false);
    assert.equal(await page.evaluate(() => document.cookie), "", "scripts cannot read the cookie");
  });

  it("hides views that need the control plane and explains why", async () => {
    const names = await page.getByRole("navigation").getByRole("link").allInnerTexts();
    assert.ok(names.includes("Chat") && !names.includes("Fleet") && !names.includes("Logs"), String(names));
    await page.getByRole("navigation").getByText("require the control plane").waitFor();
    await go("#/i/this/logs");
    await page.getByRole("heading", { name: "Control plane required" }).waitFor();
  });
});

describe("chat", () => {
  it("streams text and then shows the stored message once", async () => {
    const more = gate();
    model.answer = async function* () { yield { text: "The first half" }; await more.passed; yield { text: " and the **second**." }; };
    await say("Tell me something");
    await see("The first half");
    assert.equal(await page.getByRole("button", { name: "Stop" }).isVisible(), true);
    await shot(page, "chat-streaming");
    more.open();
    await log().getByText("second").waitFor();
    await page.getByRole("button", { name: "Stop" }).waitFor({ state: "hidden" });
    assert.equal(await count("Tell me something"), 1);
    // The DOM text, not the rendered text, which may be drawn later.
    assert.equal(await log().locator("strong").textContent(), "second");
    await page.reload();
    await log().getByText("second").waitFor();
    assert.equal(await log().locator("article").count(), 2);
  });

  it("shows a tool call with its arguments, result and sandbox", async () => {
    model.answer = async function* (asked) {
      if (followsTool(asked)) yield { text: "It is empty." };
      else { yield { text: "Let me look." }; yield { call: { id: "call-1", name: "list_dir", arguments: { path: "." } } }; }
    };
    await say("What is in the folder?");
    await stored(page, "It is empty.");
    const card = log().locator("details");
    assert.equal(await card.count(), 1);
    await card.locator("summary").focus();
    await page.keyboard.press("Enter");
    assert.match(await card.innerText(), /list_dir[\s\S]*Done[\s\S]*Arguments[\s\S]*"path": "\."[\s\S]*Result[\s\S]*Sandbox:/);
  });

  it("asks for approval in the chat, also after a reload, and continues after the decision", async () => {
    model.answer = async function* (asked) {
      if (followsTool(asked)) yield { text: "Ran it." };
      else { yield { text: "I would run this." }; yield { call: { id: "call-1", name: "shell", arguments: { command: "echo from the shell" } } }; }
    };
    await say("Run it");
    await page.getByText("Approval needed: shell").waitFor();
    await page.reload();
    await page.getByText("Approval needed: shell").waitFor();
    assert.equal(await count("I would run this."), 1, "the text is not shown both stored and streamed");
    await page.getByRole("button", { name: "Allow" }).click();
    await stored(page, "Ran it.");
    assert.equal(await log().locator("details").count(), 1);
    await log().locator("details summary").click();
    assert.match(await log().locator("details").innerText(), /from the shell/);
    assert.equal(await page.getByText("Approval needed").count(), 0);
  });

  it("accepts a message during a turn, interrupts the task and resumes it afterwards", async () => {
    const more = gate();
    const answers = [
      async function* () { yield { text: "Working on it." }; await more.passed; yield { call: { id: "call-1", name: "list_dir", arguments: { path: "." } } }; },
      says("A quick answer."), says("The long task is done."),
    ];
    model.answer = (asked) => answers.shift()(asked);
    await say("A long task");
    await see("Working on it.");
    await say("A quick question");
    await page.getByText("Waiting: will be handled at the next step").waitFor();
    more.open();
    await stored(page, "The long task is done.");
    for (const text of ["A long task", "A quick question", "A quick answer.", "The long task is done."]) await until(`"${text}" is shown once`, async () => await count(text) === 1);
    await see("Resuming the earlier task.");
  });

  it("shows the output of a sub-agent live under its name", async () => {
    const more = gate();
    model.answer = async function* (asked) {
      if (lastUserText(asked).includes("Count the stars")) { yield { text: "One, two" }; await more.passed; yield { text: ", three." }; return; }
      if (followsTool(asked) || !lastUserText(asked).includes("Get help")) { yield { text: "Somebody is on it." }; return; }
      yield { call: { id: "call-1", name: "sessions_spawn", arguments: { task: "Count the stars" } } };
    };
    await say("Get help");
    await log().getByText("is working for this chat").waitFor();
    await log().locator("section").getByText("One, two", { exact: false }).waitFor();
    await shot(page, "chat-child");
    more.open();
    await log().getByText("is working for this chat").waitFor({ state: "detached" });
  });

  it("shows the output of a delegate once, during and after streaming", async () => {
    const [usual, usualFront] = [daemon, front];
    daemon = await Daemon.start(model.url, "scripted/steady", DELEGATION_CONFIG);
    front = await frontOf(daemon);
    const one = await enter();
    try {
      page = one.page;
      const more = gate();
      model.answer = async function* (asked) {
        if (lastUserText(asked).includes("the hard part")) { yield { text: "It must be " }; await more.passed; yield { text: "forty-two." }; }
        else if (followsTool(asked)) yield { text: "So says the expert." };
        else yield { call: { id: "c1", name: "delegate_to_agent", arguments: { agent_id: "expert", task: "the hard part", stream: true } } };
      };
      let isListed = false;
      page.on("response", async (answer) => { if (answer.url().includes("owner=")) isListed ||= (await answer.text().catch(() => "")).includes(":delegate:"); });
      const speeches = () => log().getByRole("region", { name: "Expert" });
      await say("What is it?");
      await speeches().getByText("It must be", { exact: false }).first().waitFor();
      await until("the delegate's own session is listed and not shown in addition", () => isListed);
      assert.equal(await speeches().count(), 1);
      await shot(page, "chat-delegate-live");
      more.open();
      await see("So says the expert.");
      for (const again of [false, true]) {
        if (again) { await page.reload(); await see("So says the expert."); }
        await speeches().getByText("It must be forty-two.").waitFor();
        assert.equal(await speeches().count(), 1);
        assert.equal(await log().getByText("finish", { exact: false }).count(), 0, "text for the model is not shown to people");
      }
      await shot(page, "chat-delegate-end");
    } finally {
      await one.end();
      front.stop();
      await daemon.remove();
      [daemon, front] = [usual, usualFront];
    }
  });

  it("stops a turn, keeps its partial text and shows command replies below the question", async () => {
    const never = gate();
    model.answer = async function* () { yield { text: "On and on" }; await never.passed; };
    await say("Count for ever");
    await see("On and on");
    await say("/help");
    await log().getByText("list the commands").waitFor();
    const inOrder = async (...texts) => {
      const said = await log().innerText();
      const places = texts.map((text) => said.indexOf(text));
      assert.deepEqual(places, places.filter((at) => at >= 0).toSorted((a, b) => a - b), said);
    };
    await inOrder("Count for ever", "On and on", "/help");
    await page.getByRole("button", { name: "Stop" }).click();
    await see("Stopped here.");
    await page.getByRole("button", { name: "Stop" }).waitFor({ state: "hidden" });
    await inOrder("Count for ever", "On and on", "Stopped here.", "/help");
    await page.reload();
    await see("Stopped here.");
    await inOrder("Count for ever", "On and on", "Stopped here.");
    never.open();
  });

  it("shows a tool call as stopped if its turn is stopped during the approval", async () => {
    model.answer = async function* () { yield { call: { id: "call-1", name: "shell", arguments: { command: "date" } } }; };
    await say("What time is it?");
    await page.getByRole("button", { name: "Allow", exact: false }).first().waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    const card = log().locator("details.tool", { hasText: "shell" });
    await card.getByText("Stopped", { exact: true }).waitFor();
    assert.equal(await card.getByText("Failed", { exact: true }).count(), 0);
    await shot(page, "call-stopped");
  });

  it("explains agent fields in the selected language", async () => {
    const chinese = await enter({ locale: "zh-CN" }, "#/i/this/agents/%2B");
    await chinese.page.getByText("由哪个模型回答。", { exact: false }).waitFor();
    for (const group of await chinese.page.locator("form details").all()) await group.evaluate((node) => { node.open = true; });
    const said = await chinese.page.locator("form .hint, form summary").allInnerTexts();
    assert.deepEqual(said.filter((text) => !/[\u4e00-\u9fff]/.test(text)), []);
    await shot(chinese.page, "agent-form-chinese");
    await chinese.end();
  });

  it("keeps an unsent first message and drafts, and sends the message once", async () => {
    visit.expected = /ERR_FAILED/;
    model.answer = async function* (asked) { yield { text: `Heard: ${lastUserText(asked)}` }; };
    await page.route("**/messages", (route) => route.abort());
    await say("Do not lose this");
    await log().getByText("Not sent.", { exact: false }).waitFor();
    const chat = await page.evaluate(() => location.hash);
    await composer().fill("Half a thought");
    await page.locator("input[type=file]").setInputFiles([{ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("notes") }]);
    await page.locator("form .files").getByText("notes.txt").waitFor();
    await go("#/i/this/chat");
    await page.getByText("What would you like to do?").waitFor();
    assert.equal(await composer().inputValue(), "", "a draft belongs to one chat");
    await go("#/i/this/usage");
    await page.getByRole("heading", { name: "Usage" }).waitFor();
    await page.unroute("**/messages");
    await go(chat);
    await stored(page, "Heard: Do not lose this");
    assert.equal(await log().locator(".bubble", { hasText: "Do not lose this" }).count(), 1);
    assert.equal(await composer().inputValue(), "Half a thought");
    await page.locator("form .files").getByText("notes.txt").waitFor();
  });

  it("restores attachments if a chat cannot be created and names unreadable files", async () => {
    visit.expected = /500/;
    await page.locator("input[type=file]").setInputFiles([{ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("notes") }]);
    await page.locator("form .files").getByText("notes.txt").waitFor();
    await page.route("**/api/v1/sessions", (route) => route.fulfill({ status: 500, body: "" }));
    await say("Read this");
    await page.locator(".toast").waitFor();
    assert.equal(await composer().inputValue(), "Read this");
    await page.locator("form .files").getByText("notes.txt").waitFor();
    await page.evaluate(() => { File.prototype.text = () => Promise.reject(new DOMException("gone")); });
    await page.locator("input[type=file]").setInputFiles([{ name: "gone.txt", mimeType: "text/plain", buffer: Buffer.from("x") }]);
    await page.getByText("gone.txt was not attached: it could not be read.").waitFor();
  });

  it("switches the agent and the model of a chat", async () => {
    model.answer = says("Hello.");
    await say("Hi");
    await see("Hello.");
    await page.getByLabel("Agent").selectOption("research");
    await page.getByLabel("Model").selectOption("scripted/steady");
    const key = decodeURIComponent(page.url().split("/").at(-1));
    await until("the session has both", async () => {
      const session = await daemon.api("GET", `/sessions/${encodeURIComponent(key)}`);
      return session.model === "scripted/steady" && session.active_agent_id === "research";
    });
    await say("And now?");
    await log().getByText("Research").waitFor();
  });

  it("shows an image in the composer, to the model and in the transcript", async () => {
    let seen = null;
    model.answer = async function* (asked) { seen = asked.messages.at(-1).content; yield { text: "A red dot." }; };
    const pixel = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC", "base64");
    await page.locator("input[type=file]").setInputFiles([{ name: "dot.png", mimeType: "image/png", buffer: pixel }]);
    await page.locator("form .files img").waitFor();
    await say("What is it?");
    await see("A red dot.");
    assert.equal(seen.at(-1).image_url.url, `data:image/png;base64,${pixel.toString("base64")}`);
    await page.waitForFunction(() => {
      const image = document.querySelector('[role=log] img[alt="dot.png"]');
      return /\/api\/v1\/media\/[0-9a-f]{64}$/.test(image?.src ?? "") && image.naturalWidth === 1;
    });
  });

  it("attaches text, refuses unsupported images, runs commands and shows errors", async () => {
    visit.expected = /40\d/;
    model.answer = async function* (asked) { yield { text: lastUserText(asked).includes("secret of the file") ? "I read it." : "No file." }; };
    await page.locator("input[type=file]").setInputFiles([{ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("secret of the file") }, { name: "a.svg", mimeType: "image/svg+xml", buffer: Buffer.from("x") }]);
    await page.getByText("a.svg was not attached: only text and PNG, JPEG, GIF or WebP images are supported.").waitFor();
    await say("Read this");
    await see("I read it.");
    await log().getByText("notes.txt").waitFor();
    await say("/help");
    await log().getByText("list the commands").waitFor();
    await say("/agent nobody");
    await page.getByText("Agent not found.").waitFor();
    assert.equal(await composer().inputValue(), "/agent nobody", "the typed text is kept");
  });

  it("shows hostile names and messages as plain text", async () => {
    const hostile = `<img src=x onerror="document.title='owned'"> <script>document.title='owned'</script> [x](javascript:alert(1)) \u202Ertl\u202C ${"verylongword".repeat(900)} 👾`;
    model.answer = says(hostile);
    await say(hostile);
    await log().locator("article").nth(1).getByText("<img src=x", { exact: false }).waitFor();
    await page.getByRole("button", { name: "Stop" }).waitFor({ state: "hidden" });
    assert.equal(await log().locator("img, script, a[href^=javascript]").count(), 0);
    assert.doesNotMatch(await page.title(), /^owned/);
    assert.ok(await sticksOut(page) <= 0);
    await go("#/i/this/sessions");
    await page.getByRole("main").getByText("<img src=x", { exact: false }).first().waitFor();
    assert.equal(await page.locator("main img").count(), 0);
  });
});

describe("sessions, agents, usage, events", () => {
  it("shows a session transcript with its origin and deletes several sessions together", async () => {
    model.answer = says("For the list.");
    for (const title of ["First of two", "Second of two"]) {
      const { session_key } = await daemon.api("POST", "/sessions", { title });
      await daemon.api("POST", `/sessions/${encodeURIComponent(session_key)}/messages?wait=20`, { text: title, channel: "cli" });
    }
    await go("#/i/this/sessions");
    await page.getByRole("link", { name: /First of two/ }).click();
    await page.getByText("For the list.").waitFor();
    await page.locator("ol").getByText("User", { exact: true }).first().waitFor();
    await page.getByText("Command line").first().waitFor();
    for (const title of ["First of two", "Second of two"]) await page.getByRole("checkbox", { name: `Select ${title}` }).check();
    await page.getByRole("toolbar").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("link", { name: /of two/ }).first().waitFor({ state: "detached" });
    visit.expected = /404/;
  });

  it("keeps sessions in the list that could not be deleted", async () => {
    visit.expected = /500/;
    const made = {};
    for (const title of ["Stays here", "Goes away"]) made[title] = (await daemon.api("POST", "/sessions", { title })).session_key;
    await page.route(`**/sessions/${encodeURIComponent(made["Stays here"])}`, (route) => (route.request().method() === "DELETE" ? route.fulfill({ status: 500, body: "" }) : route.continue()));
    await go("#/i/this/sessions");
    for (const title of Object.keys(made)) await page.getByRole("checkbox", { name: `Select ${title}` }).check();
    await page.getByRole("toolbar").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("link", { name: /Goes away/ }).waitFor({ state: "detached" });
    await page.locator(".toast").waitFor();
    assert.equal(await page.getByRole("link", { name: /Stays here/ }).count(), 1);
  });

  it("shows a list error once and the list after recovery", async () => {
    visit.expected = /500/;
    await page.route("**/sessions?*", (route) => route.fulfill({ status: 500, json: { error: { code: "internal", message: "The disk is full." } } }));
    await go("#/i/this/sessions");
    await page.locator(".toast").getByText("The disk is full.").waitFor();
    await page.unroute("**/sessions?*");
    model.answer = says("Here.");
    const { session_key } = await daemon.api("POST", "/sessions", { title: "Readable again" });
    await daemon.api("POST", `/sessions/${encodeURIComponent(session_key)}/messages?wait=20`, { text: "Hi" });
    await page.getByRole("link", { name: /Readable again/ }).waitFor();
  });

  it("creates, edits and deletes an agent with its form and explains a tool decision", async () => {
    visit.expected = /40\d/;
    await go("#/i/this/agents/%2B");
    await page.getByLabel("ID *").fill("My Helper");
    const rule = page.getByText("Invalid ID: use lower-case letters, digits", { exact: false });
    await rule.waitFor();
    assert.equal(await page.getByLabel("ID *").getAttribute("aria-invalid"), "true");
    await page.getByLabel("ID *").fill("helper");
    await rule.waitFor({ state: "detached" });
    await page.getByLabel("Name *").fill("Helper");
    await page.getByLabel("System prompt").fill("Be brief.");
    await page.getByRole("button", { name: "Create agent" }).click();
    await page.getByText("Saved.").waitFor();
    assert.equal((await daemon.api("GET", "/agents/helper")).defaults.system_prompt, "Be brief.");
    await page.getByLabel("Description", { exact: true }).fill("Helps.");
    await page.getByRole("button", { name: "Save" }).click();
    await until("the change is saved", async () => (await daemon.api("GET", "/agents/helper")).description === "Helps.");
    await page.getByRole("tab", { name: "Tools" }).click();
    await page.getByRole("searchbox").fill("shell");
    await page.getByRole("button", { name: "Why?" }).first().click();
    await page.getByRole("heading", { name: "Why shell is not allowed" }).waitFor();
    await page.getByRole("dialog").getByRole("listitem").filter({ hasText: "Inherited tools: no rule denies it" }).waitFor();
    await shot(page, "agent-why");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("link", { name: "Helper" }).waitFor({ state: "detached" });
    await go("#/i/this/agents/%3F");
    await page.getByLabel("Sender id").fill("42");
    await page.getByLabel("Text").fill("hello");
    await page.getByRole("button", { name: "Explain" }).click();
    await page.getByText("main would answer.").waitFor();
  });

  it("shows unknown usage as unknown and draws charts of known usage", async () => {
    await go("#/i/this/usage");
    await page.getByText("The token count of", { exact: false }).waitFor();
    assert.ok(await page.getByRole("cell", { name: "Unknown" }).count() > 0);
    await page.locator("canvas").first().waitFor();
  });

  it("decides an approval in the inbox", async () => {
    model.answer = async function* (asked) {
      if (followsTool(asked)) yield { text: "Not done, then." };
      else yield { call: { id: "call-1", name: "shell", arguments: { command: "rm -r everything" } } };
    };
    const { session_key } = await daemon.api("POST", "/sessions", { title: "Dangerous" });
    await daemon.api("POST", `/sessions/${encodeURIComponent(session_key)}/messages`, { text: "Go" });
    await page.getByLabel("1 pending approval").waitFor();
    await go("#/approvals");
    await page.getByText("rm -r everything").waitFor();
    await page.locator("section", { hasText: "rm -r everything" }).getByRole("button", { name: "Deny" }).click();
    await page.getByText("No pending approvals").waitFor();
    await go("#/i/this/events");
    await page.getByRole("listitem").getByText("Approval decided").first().waitFor();
  });
});

describe("accessibility and languages", () => {
  it("works on a phone: menu, chat, no horizontal scrolling", async () => {
    await visit.end();
    visit = await enter({ ...PHONE, colorScheme: "dark" });
    page = visit.page;
    model.answer = says(`A ${"verylongword".repeat(20)} and\n\n\`\`\`sh\n${"echo a long line ".repeat(12)}\n\`\`\``);
    await say("Narrow?");
    await log().locator("pre").waitFor();
    assert.ok(await sticksOut(page) <= 0);
    await shot(page, "chat-phone-dark");
    await page.getByRole("button", { name: "Chats" }).click();
    await page.getByRole("dialog").getByText("Narrow?").waitFor();
    for (const [role, name] of [["heading", "Chats"], ["button", "New chat"]]) assert.equal(await page.getByRole("dialog").getByRole(role, { name }).count(), 1, `${name} is shown once`);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Menu" }).click();
    await page.getByRole("link", { name: "Sessions" }).waitFor();
    await shot(page, "menu-phone-dark");
    await page.getByRole("link", { name: "Sessions" }).click();
    await page.getByRole("heading", { name: "Sessions" }).waitFor();
  });

  it("links chat, session, usage and events of one conversation", async () => {
    model.answer = async function* (asked) {
      if (followsTool(asked)) yield { text: "Seen from two sides." };
      else yield { call: { id: "call-1", name: "shell", arguments: { command: "true" } } };
    };
    await say("One thing, two views");
    // The approval creates an event.
    await page.getByRole("button", { name: "Deny" }).click();
    await stored(page, "Seen from two sides.");
    await page.getByRole("button", { name: "Session details", exact: false }).click();
    await page.getByRole("heading", { name: "One thing, two views" }).waitFor();
    await go("#/i/this/usage");
    await page.getByRole("tab", { name: "By session" }).click();
    await page.getByRole("cell").getByRole("link").first().click();
    await page.getByRole("button", { name: "Open as chat" }).waitFor();
    await go("#/i/this/events");
    await page.getByRole("listitem").getByRole("button").last().click();
    await page.getByRole("dialog").getByRole("link", { name: "Open session" }).click();
    await page.getByRole("button", { name: "Open as chat" }).waitFor();
  });

  it("navigates by keyboard with the command palette", async () => {
    await page.keyboard.press("Control+k");
    await page.keyboard.type("usage");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Usage" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.type("dark");
    await shot(page, "palette");
    await page.keyboard.press("Enter");
    assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
    for (let step = 0; step < 60; step += 1) {
      await page.keyboard.press("Tab");
      const bare = await page.evaluate(() => { const style = getComputedStyle(document.activeElement); return document.activeElement !== document.body && style.outlineStyle === "none" && document.activeElement.tagName; });
      assert.ok(!bare || ["TEXTAREA", "MAIN"].includes(bare), `${bare} shows its focus`);
    }
  });

  it("uses Chinese for Chinese browsers and remembers a language switch", async () => {
    await visit.end();
    visit = await enter({ locale: "zh-CN" }, "#/i/this/overview");
    page = visit.page;
    await page.getByRole("link", { name: "对话" }).first().waitFor();
    assert.equal(await page.locator("html").getAttribute("lang"), "zh");
    await shot(page, "overview-chinese");
    await page.getByRole("button", { name: "English" }).click();
    await page.getByRole("link", { name: "Chat" }).first().waitFor();
    await page.reload();
    await page.getByRole("link", { name: "Chat" }).first().waitFor();
  });

  it("loads little, only from its own origin, under a policy without inline scripts", async () => {
    await go("#/i/this/overview");
    const asked = [];
    page.on("response", (response) => asked.push(response));
    await page.reload();
    await page.getByRole("heading", { name: "This instance" }).waitFor();
    assert.deepEqual(asked.map((one) => one.url()).filter((url) => !url.startsWith(front.url)), []);
    const files = asked.filter((one) => one.url().includes("/app/"));
    const packed = await Promise.all(files.map(async (one) => gzipSync(Buffer.from(await (await fetch(one.url())).arrayBuffer())).length));
    const sum = packed.reduce((all, size) => all + size, 0);
    console.log(`first load of the overview: ${files.length} files, ${(sum / 1024).toFixed(1)} KB compressed`);
    assert.ok(sum < 300 * 1024);
    for (const one of files) assert.match(one.headers()["content-security-policy"], /default-src 'self'(?!.*unsafe)/);
  });
});

// The chat page in a real browser, on the real binary: POLYCLAW_BIN=target/debug/polyclaw npm test
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { chromium } from "playwright-core";
import { shot as take } from "./browser.mjs";
import { Daemon, TOKEN } from "./daemon.mjs";
import { growth } from "./growth.mjs";
import { Model, followsTool, gate, lastUserText } from "./model.mjs";

const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const UNREACHABLE = /ERR_CONNECTION_(REFUSED|RESET)|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED_ENCODING/;

let model, daemon, browser, context, page, faults, expected;

before(async () => {
  model = await new Model().start();
  daemon = await Daemon.start(model.url);
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
});

after(async () => {
  await browser?.close();
  await daemon?.remove();
  model?.stop();
});

beforeEach(async () => {
  expected = null;
  await visit();
});

afterEach(async () => {
  await context.close();
  assert.deepEqual(faults.filter((fault) => !expected?.test(fault)), [], "the console has no unexpected messages");
});

/** Opens the page in a new browser context, with an empty chat. */
async function visit(options = {}) {
  await context?.close();
  faults = [];
  context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-GB", ...options });
  await context.addInitScript(watchForDuplicates);
  page = await context.newPage();
  page.setDefaultTimeout(10_000);
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) faults.push(message.text()); });
  page.on("pageerror", (error) => faults.push(String(error)));
  await page.goto(daemon.url + (await daemon.api("POST", "/logins")).path);
  await page.locator("#app").waitFor();
  if (await page.locator("#sessions li").count()) await page.locator("#new-chat").evaluate((node) => node.click());
}

/** Runs in the page: logs an error whenever a reply, or the start of one, is shown twice, even briefly. */
function watchForDuplicates() {
  const look = () => {
    const texts = [...document.querySelectorAll("#log .text")].map((node) => node.textContent.replace(/^… /, "")).filter(Boolean);
    texts.sort().forEach((text, at) => { if (texts[at + 1]?.startsWith(text)) console.error(`shown twice: ${text}`); });
  };
  document.addEventListener("DOMContentLoaded", () =>
    new MutationObserver(look).observe(document.getElementById("log"), { childList: true, subtree: true, characterData: true }));
}

async function say(text) {
  await page.locator("#composer-text").fill(text);
  await page.locator("#composer-text").press("Enter");
}

const shot = (name) => take(page, `small-${name}`);
const see = (text) => page.locator("#log").getByText(text, { exact: true }).first().waitFor();
const count = (text) => page.locator("#log").getByText(text, { exact: true }).count();
/** Waits until no turn runs and the page shows all stored messages. */
async function idle() {
  let seen;
  for (const deadline = Date.now() + 15_000; Date.now() < deadline; await pause(50)) {
    seen = await page.evaluate(() => ({ key: chat.key, messages: chat.messages.size, busy: chat.turns.size + outgoing.length }));
    if (!seen.key || seen.busy) continue;
    const route = `/sessions/${encodeURIComponent(seen.key)}`;
    const session = await daemon.api("GET", route);
    const { messages } = await daemon.api("GET", `${route}/transcript`);
    const isIdle = session.running_turn_id === null && session.queued === 0 && messages.length > 0;
    if (isIdle && seen.messages === messages.length) return;
  }
  assert.fail(`the page does not become idle: ${JSON.stringify(seen)}`);
}
/** Returns the shown messages from top to bottom. */
const said = () => page.locator("#stored > .user .bubble, #stored > .reply > .text, #stored > .note").allInnerTexts();
const says = (text) => async function* () { yield { text }; };

describe("login", () => {
  it("logs in with a one-time link and removes the code from the URL", async () => {
    assert.equal(new URL(page.url()).search, "");
    assert.equal(await page.locator("#composer-text").evaluate((field) => field === document.activeElement), true);
    assert.equal(await page.evaluate(() => document.cookie), "", "scripts cannot read the cookie");
    await shot("empty");
  });

  it("shows errors for a used link and a wrong token", async () => {
    expected = /401/;
    await context.clearCookies();
    await page.goto(`${daemon.url}/?code=used`);
    await page.locator("#login h1").waitFor();
    assert.match(await page.locator("#login").innerText(), /works once/);
    await page.locator("#login-token").fill("wrong");
    await page.locator("#login-token").press("Enter");
    await page.locator("#login-error").waitFor();
    assert.equal(await page.locator("#app").isVisible(), false);
  });

  it("asks for a missing token and accepts the correct one", async () => {
    expected = /401/;
    await context.clearCookies();
    await page.goto(daemon.url);
    await page.locator("#login h1").waitFor();
    assert.match(await page.locator("#login").innerText(), /needs a token[\s\S]*polyclaw up/);
    assert.equal(await page.locator("#app").isVisible(), false);
    await shot("gate");
    await page.locator("#login-token").fill(TOKEN);
    await page.locator("#login-token").press("Enter");
    await page.locator("#app").waitFor();
    assert.equal(page.url().includes(TOKEN) || page.url().includes("code="), false);
  });
});

describe("conversation", () => {
  it("shows streamed text, then the stored message", async () => {
    const more = gate();
    model.answer = async function* () {
      yield { text: "The first half" };
      await more.passed;
      yield { text: " and the **second**." };
    };
    await say("Tell me something");
    await page.locator(".live", { hasText: "The first half" }).waitFor();
    assert.equal(await page.locator("#stop").isVisible(), true);
    await shot("streaming");
    more.open();
    await idle();
    assert.deepEqual(await said(), ["Tell me something", "The first half and the second."]);
    assert.equal(await page.locator("#stored strong").innerText(), "second");
    assert.equal(await page.locator("#stop").isVisible(), false);
    assert.match(await page.locator("#details").innerText(), /main.*scripted\/steady/);
    assert.match(await page.locator("#announcer").innerText(), /The first half and/);
    assert.equal(await page.locator("#sessions [aria-current] .name").innerText(), "Tell me something");
  });

  it("inserts a new line with Shift+Enter and does not send during IME composition", async () => {
    model.answer = says("Two lines.");
    await page.locator("#composer-text").fill("one");
    await page.locator("#composer-text").press("Shift+Enter");
    await page.keyboard.type("two");
    await page.locator("#composer-text").dispatchEvent("keydown", { key: "Enter", isComposing: true });
    assert.equal(await page.locator("#composer-text").inputValue(), "one\ntwo");
    await page.locator("#composer-text").press("Enter");
    await idle();
    assert.deepEqual(await said(), ["one\ntwo", "Two lines."]);
  });

  it("shows a tool call and its result in an expandable card", async () => {
    model.answer = async function* (asked) {
      if (followsTool(asked)) { yield { text: "It is empty." }; return; }
      yield { text: "Let me look." };
      yield { call: { id: "call-1", name: "list_dir", arguments: { path: "." } } };
    };
    await say("What is in the folder?");
    await idle();
    const card = page.locator("#stored .card");
    assert.equal(await card.count(), 1);
    assert.match(await card.getAttribute("class"), /done/);
    assert.equal(await card.locator("pre").first().isVisible(), false);
    await card.locator("summary").focus();
    await page.keyboard.press("Enter");
    assert.match(await card.innerText(), /list_dir[\s\S]*Arguments[\s\S]*"path": "\."[\s\S]*Result/);
    assert.deepEqual(await said(), ["What is in the folder?", "Let me look.", "It is empty."]);
    await shot("tool");
  });

  it("asks for approval before a risky tool runs, also for a message from the CLI", async () => {
    model.answer = says("Hello.");
    await say("Hi");
    await idle();
    model.answer = async function* (asked) {
      if (followsTool(asked)) yield { text: "Ran it." };
      else yield { call: { id: "call-1", name: "shell", arguments: { command: "echo from the shell" } } };
    };
    await daemon.api("POST", `/sessions/${new URL(page.url()).hash.slice(2)}/messages`, { text: "Run it", channel: "cli" });
    await page.locator(".approval").waitFor();
    assert.match(await page.locator(".approval").innerText(), /shell[\s\S]*echo from the shell/);
    await shot("ask");
    await page.reload();
    await page.locator(".approval button", { hasText: "Allow" }).click();
    await idle();
    await page.locator("#stored .card summary").click();
    assert.match(await page.locator("#stored .card").innerText(), /from the shell/);
    assert.equal(await page.locator(".approval").count(), 0);
    assert.equal(await count("Ran it."), 1);
  });

  it("shows a message sent during a turn as waiting and answers both in order", async () => {
    const more = gate();
    model.answer = async function* (asked) {
      if (!lastUserText(asked).includes("First")) { yield { text: "Second answer." }; return; }
      yield { text: "First" };
      await more.passed;
      yield { text: " answer." };
    };
    await say("First question");
    await page.locator(".live", { hasText: "First" }).waitFor();
    await say("Another question");
    await page.locator(".user.waiting", { hasText: "Another question" }).waitFor();
    await shot("waiting");
    await page.reload();
    await page.locator(".user.waiting", { hasText: "Another question" }).waitFor();
    await page.locator(".live", { hasText: "First" }).waitFor();
    more.open();
    await see("Second answer.");
    await idle();
    assert.deepEqual(await said(), ["First question", "First answer.", "Another question", "Second answer."]);
  });

  it("interrupts a task for a newer message and resumes it afterwards", async () => {
    const more = gate();
    const answers = [
      async function* () {
        yield { text: "Working on it." };
        await more.passed;
        yield { call: { id: "call-1", name: "list_dir", arguments: { path: "." } } };
      },
      says("A quick answer."),
      says("The long task is done."),
    ];
    model.answer = (asked) => answers.shift()(asked);
    await say("A long task");
    await page.locator(".live", { hasText: "Working on it." }).waitFor();
    await say("A quick question");
    await page.locator(".user.waiting").waitFor();
    more.open();
    await see("The long task is done.");
    await idle();
    assert.deepEqual(await said(), ["A long task", "Working on it.", "A quick question", "A quick answer.",
      "Resuming the earlier task.", "The long task is done."]);
    assert.equal(await page.locator("#stored .card.done").count(), 1);
    await shot("steered");
  });

  it("stops a running turn with the Stop button", async () => {
    const never = gate();
    model.answer = async function* () { yield { text: "On and on" }; await never.passed; };
    await say("Count for ever");
    await page.locator(".live", { hasText: "On and on" }).waitFor();
    await page.locator("#stop").click();
    await idle();
    assert.equal((await said()).at(-1), "Stopped.");
    assert.equal(await page.locator("#stop").isVisible(), false);
    never.open();
  });

  it("runs commands, sends unknown slash lines as messages and shows command errors", async () => {
    expected = /40\d/;
    model.answer = says("A path.");
    await say("/help");
    await page.locator(".note", { hasText: "list the commands" }).waitFor();
    await say("/etc/hosts is what?");
    await idle();
    assert.equal(await page.locator("#stored > :first-child").evaluate((node) => node.matches(".note")), true, "the note is in the order of typing");
    await say("/agent nobody");
    await page.locator("#error", { hasText: "nobody" }).waitFor();
    assert.equal(await page.locator("#composer-text").inputValue(), "/agent nobody", "the typed text is kept");
    await shot("problem");
  });

  it("shows the error text of a failed turn", async () => {
    model.answer = async function* () { throw new Error("gone"); };
    await say("Will this work?");
    await page.locator("#stored .failed").waitFor({ timeout: 60_000 });
    assert.ok((await page.locator("#stored .failed").innerText()).length > 10);
    await shot("failed");
  });
});

describe("no duplicates", () => {
  it("shows the same transcript once after a reload", async () => {
    model.answer = says("A lasting answer.");
    await say("Remember this");
    await idle();
    const first = await said();
    await page.reload();
    await idle();
    assert.deepEqual(await said(), first);
    assert.deepEqual(first, ["Remember this", "A lasting answer."]);
  });

  it("continues a streaming answer after a reload without duplicating it", async () => {
    const more = gate();
    model.answer = async function* (asked) {
      if (!followsTool(asked)) {
        yield { text: "Looking first." };
        yield { call: { id: "call-1", name: "list_dir", arguments: { path: "." } } };
        return;
      }
      yield { text: "Half of it" };
      await more.passed;
      yield { text: " and the rest." };
    };
    await say("Go on");
    await page.locator(".live", { hasText: "Half of it" }).waitFor();
    await page.reload();
    await page.locator(".live", { hasText: "Half of it" }).waitFor();
    assert.equal(await count("Looking first."), 1);
    assert.equal(await page.locator(".card").count(), 1);
    more.open();
    await idle();
    assert.deepEqual(await said(), ["Go on", "Looking first.", "Half of it and the rest."]);
  });

  it("shows exactly one answer when the daemon is killed during the answer", async () => {
    expected = UNREACHABLE;
    const never = gate();
    model.answer = async function* () { yield { text: "An answer cut sho" }; await never.passed; };
    await say("Survive this");
    await page.locator(".live", { hasText: "An answer cut sho" }).waitFor();
    await daemon.kill();
    await page.locator("#connection").waitFor();
    await shot("lost");
    model.answer = says("An answer whole.");
    await daemon.run();
    await see("An answer whole.");
    await idle();
    assert.deepEqual(await said(), ["Survive this", "An answer whole."]);
    assert.equal(await page.locator("#connection").isVisible(), false);
    await page.reload();
    await idle();
    assert.deepEqual(await said(), ["Survive this", "An answer whole."]);
    never.open();
  });

  it("keeps messages written while the daemon is stopped and sends them once", async () => {
    expected = UNREACHABLE;
    model.answer = says("Here I am.");
    await say("Hello");
    await idle();
    model.answer = says("Back again.");
    await daemon.kill();
    await say("Are you there?");
    await page.locator(".state.not_sent").waitFor();
    await daemon.run();
    await page.waitForFunction(() => document.querySelectorAll("#stored > .reply").length === 2);
    await idle();
    assert.deepEqual(await said(), ["Hello", "Here I am.", "Are you there?", "Back again."]);
    assert.equal(await page.locator("#error").isVisible(), false);
  });
});

describe("accessibility and languages", () => {
  it("fits 360 pixels without horizontal scrolling and shows the chats in a drawer", async () => {
    await visit({ viewport: { width: 360, height: 720 }, isMobile: true, hasTouch: true, reducedMotion: "reduce" });
    model.answer = says(`A ${"verylongword".repeat(20)} and\n\n\`\`\`sh\n${"echo a long line ".repeat(12)}\n\`\`\`\n\n- one\n- two`);
    await say("Narrow?");
    await idle();
    const [wide, inner] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= inner, `${wide} > ${inner}`);
    assert.ok(await page.locator("#scroll").evaluate((node) => node.scrollWidth <= node.clientWidth));
    await shot("small");
    assert.equal(await page.locator("#sidebar").isVisible(), false);
    await page.locator("#menu").click();
    await page.locator("#new-chat").waitFor();
    await shot("small-menu");
    await page.keyboard.press("Escape");
    await page.locator("#sidebar").waitFor({ state: "hidden" });
  });

  it("uses Chinese for Chinese browsers and remembers a language switch", async () => {
    await visit({ locale: "zh-CN", colorScheme: "dark" });
    model.answer = says("你好！");
    await say("你好吗？");
    await idle();
    assert.equal(await page.locator("html").getAttribute("lang"), "zh");
    assert.equal(await page.locator("#send").innerText(), "发送");
    assert.equal(await page.locator("#composer-text").getAttribute("placeholder"), "输入消息…");
    await shot("chinese");
    await page.locator("#language").click();
    assert.equal(await page.locator("#send").innerText(), "Send");
    await page.reload();
    await idle();
    assert.equal(await page.locator("#send").innerText(), "Send");
    assert.equal(await page.locator("html").getAttribute("lang"), "en");
  });

  it("has the same texts in both languages", async () => {
    const [en, zh] = await page.evaluate(() => [Object.keys(TEXTS.en), Object.keys(TEXTS.zh)]);
    assert.deepEqual(en, zh);
    const used = await page.evaluate(() => [...document.querySelectorAll("[data-t]")].map((node) => node.dataset.t));
    assert.deepEqual(used.filter((name) => !en.includes(name)), []);
  });

  it("is usable by keyboard with visible focus", async () => {
    const seen = new Set();
    for (let step = 0; step < 80 && !seen.has("composer-text"); step += 1) {
      await page.keyboard.press("Tab");
      const id = await page.evaluate(() => document.activeElement.id || document.activeElement.closest("[id]")?.id);
      seen.add(id);
      const ring = await page.evaluate(() => {
        const node = document.activeElement;
        const style = getComputedStyle(node.id === "composer-text" ? node.parentElement : node);
        return style.outlineStyle !== "none" || style.borderColor !== "rgba(0, 0, 0, 0)";
      });
      assert.ok(ring, `${id} shows its focus`);
    }
    for (const id of ["new-chat", "language", "composer-text"]) assert.ok(seen.has(id), `${id} of ${[...seen]}`);
  });
});

describe("the demo model", () => {
  it("is labelled as a demo in both languages, with instructions for a real model", async () => {
    assert.equal(await page.locator("#demo").isVisible(), false, "no notice while another model answers");
    // A model that the config names is listed even if its weights are missing.
    const [scripted, demo] = [daemon, await Daemon.start(model.url, "embedded/smollm2-135m")];
    daemon = demo;
    try {
      await visit();
      await page.locator("#demo").waitFor();
      assert.match(await page.locator("#demo").innerText(), /demo model[\s\S]*often wrong[\s\S]*OPENAI_API_KEY[\s\S]*doctor/);
      await page.locator("#language").click();
      assert.match(await page.locator("#demo").innerText(), /演示模型[\s\S]*OPENAI_API_KEY/);
      await shot("demo");
    } finally {
      daemon = scripted;
      await demo.remove();
    }
  });
});

describe("chat list", () => {
  it("starts with the newest chats, loads older ones on request and opens any chat by URL", async () => {
    const { session_key: oldest } = await daemon.api("POST", "/sessions", { title: "The oldest chat" });
    for (let n = 0; n < 101; n += 1) await daemon.api("POST", "/sessions", { title: `Chat ${n}` });
    await page.reload();
    await page.locator("#app").waitFor();
    const names = () => page.locator("#sessions .name").allInnerTexts();
    assert.deepEqual((await names()).slice(0, 3), ["Chat 100", "Chat 99", "Chat 98"]);
    assert.equal((await names()).includes("The oldest chat"), false);
    await page.goto(`${daemon.url}/#/${encodeURIComponent(oldest)}`);
    await page.reload();
    await page.locator("#title", { hasText: "The oldest chat" }).waitFor();
    assert.equal(await page.evaluate(() => chat.key), oldest);
    await page.locator("#older-chats").click();
    await page.locator("#sessions button[aria-current]", { hasText: "The oldest chat" }).waitFor();
    await page.evaluate((key) => { location.hash = `#/${encodeURIComponent(key)}`; }, "agent:main:web:dm:nobody");
    await page.locator("#error", { hasText: "nobody" }).waitFor();
    expected = /404/;
  });
});

describe("page files", () => {
  it("are small and load nothing from other origins", async () => {
    const asked = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.reload();
    await page.locator("#app").waitFor();
    assert.deepEqual(asked.filter((url) => !url.startsWith(daemon.url) && !url.startsWith("data:")), []);
    const files = await Promise.all(["/", "/chat.js", "/chat.css"].map((at) => fetch(daemon.url + at)));
    for (const file of files) assert.match(file.headers.get("content-security-policy"), /default-src 'self'/);
    const bytes = await Promise.all(files.map(async (file) => (await file.arrayBuffer()).byteLength));
    assert.ok(bytes.reduce((sum, size) => sum + size) <= 52 * 1024, String(bytes));
  });
});

describe("markdown", () => {
  const rows = [
    ["a *plain* line\nand another", "<p>a *plain* line<br>and another</p>"],
    ["**bold** and `code <b>`", "<p><strong>bold</strong> and <code>code &lt;b&gt;</code></p>"],
    ["# One\n### Three", "<h3>One</h3><h4>Three</h4>"],
    ["- a\n- b\n  - c\n\nafter", "<ul><li>a</li><li><p>b</p><ul><li>c</li></ul></li></ul><p>after</p>"],
    ["3. c\n4. d", '<ol start="3"><li>c</li><li>d</li></ol>'],
    ["> quoted\n> more", "<blockquote><p>quoted<br>more</p></blockquote>"],
    ["[a](https://a.example/b_(c)) x", '<p><a href="https://a.example/b_(c)" target="_blank" rel="noopener noreferrer">a</a> x</p>'],
    ["see https://a.example/x.", '<p>see <a href="https://a.example/x" target="_blank" rel="noopener noreferrer">https://a.example/x</a>.</p>'],
    ["[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>"],
    ["[x](data:text/html,hi) [y](//evil.example)", "<p>[x](data:text/html,hi) [y](//evil.example)</p>"],
    ["<img src=x onerror=alert(1)>", "<p>&lt;img src=x onerror=alert(1)&gt;</p>"],
    ["a\n\n---\n\nb", "<p>a</p><hr><p>b</p>"],
  ];
  it("renders supported syntax as elements and everything else as text", async () => {
    for (const [text, html] of rows) {
      const made = await page.evaluate((given) => { const box = document.createElement("div"); box.append(markdown(given)); return box.innerHTML; }, text);
      assert.equal(made, html);
    }
  });

  it("shows code unchanged, with or without a closing fence", async () => {
    for (const text of ["```js\nlet a = `b`;\n\n<b>\n```", "```js\nlet a = `b`;\n\n<b>"]) {
      const code = await page.evaluate((given) => markdown(given).querySelector("pre code").textContent, text);
      assert.equal(code, "let a = `b`;\n\n<b>");
    }
  });

  it("takes linear time for adversarial input", async () => {
    for (const piece of ["*", "`", "[", "[a](", "- ", "> ", "  ", "https://"]) {
      const took = await growth((size) => page.evaluate((given) => { const start = performance.now(); markdown(given); return performance.now() - start; }, `${piece.repeat(size / piece.length)}x`));
      assert.ok(took < 3, `${piece}: doubling the input took ${took} times as long`);
    }
  });
});

describe("delegate", () => {
  const DELEGATION_CONFIG = `
[[agents.list]]
id = "main"
default = true
delegation = { allow_agents = ["expert"] }
[[agents.list]]
id = "expert"
name = "Expert"
`;

  it("is shown once under its own name while the delegating agent waits", async () => {
    const usual = daemon;
    daemon = await Daemon.start(model.url, "scripted/steady", DELEGATION_CONFIG);
    try {
      await visit();
      const held = gate();
      model.answer = async function* (asked) {
        if (lastUserText(asked).includes("the hard part")) {
          yield { text: "It must be " };
          await held.passed;
          yield { text: "forty-two." };
        } else if (followsTool(asked)) yield { text: "So says the expert." };
        else yield { call: { id: "c1", name: "delegate_to_agent", arguments: { agent_id: "expert", task: "the hard part", stream: true } } };
      };
      await say("What is it?");
      await page.locator("#turns .delegate", { hasText: "It must be" }).waitFor();
      assert.equal(await page.locator("#turns .delegate .author").innerText(), "Expert");
      held.open();
      await see("So says the expert.");
      await idle();
      const shown = () => page.locator("#stored .delegate > .text, #stored > .reply > .text").allInnerTexts();
      assert.deepEqual(await shown(), ["It must be forty-two.", "So says the expert."]);
      await page.reload();
      await see("So says the expert.");
      assert.deepEqual(await shown(), ["It must be forty-two.", "So says the expert."]);
      assert.equal(await page.locator("#stored .delegate .author").innerText(), "Expert");
    } finally {
      await context.close();
      await daemon.remove();
      daemon = usual;
      await visit();
    }
  });
});

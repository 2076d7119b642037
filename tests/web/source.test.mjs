// What the page is made of, piece by piece: words, types, markdown, differences, pauses.
import assert from "node:assert/strict";
import { readFile, readdir } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, it } from "node:test";
import { Plane } from "./plane.mjs";
import { typesOf } from "../../web/scripts/types.mjs";
import { Daemon } from "./daemon.mjs";
import { growth } from "./growth.mjs";
import { source } from "./source.mjs";

const src = path.join(import.meta.dirname, "../../web/src");
const words = async (name) => JSON.parse(await readFile(path.join(src, `i18n/${name}.json`), "utf8"));
async function sources() {
  const files = (await readdir(src, { recursive: true })).filter((name) => /\.(svelte|ts)$/.test(name));
  return Promise.all(files.map(async (name) => [name, await readFile(path.join(src, name), "utf8")]));
}

describe("the words", () => {
  it("are the same in both languages, with the same gaps to fill", async () => {
    const [en, zh] = [await words("en"), await words("zh")];
    assert.deepEqual(Object.keys(en), Object.keys(zh));
    const gaps = (text) => [...text.matchAll(/\{\w+\}/g)].map(([gap]) => gap).sort();
    for (const key of Object.keys(en)) assert.deepEqual(gaps(zh[key]), gaps(en[key]), key);
  });

  it("are all there, and plain text stands in no view", async () => {
    const en = await words("en");
    for (const [name, text] of await sources()) {
      for (const [, key] of text.matchAll(/\bt\("([^"]+)"/g)) assert.ok(key in en, `${name} says ${key}`);
      assert.doesNotMatch(text, /\{@html|innerHTML|insertAdjacentHTML|document\.write|\beval\(/, name);
      if (name.endsWith(".svelte")) assert.doesNotMatch(text.replace(/<style>[\s\S]*<\/style>/, ""), /\sstyle="/, `${name}: the policy forbids inline styles`);
    }
  });

  it("are all of use: none is kept that no view says", async () => {
    const text = (await sources()).map(([, one]) => one).join("\n");
    const groups = new Set([...text.matchAll(/\bt(?:Value|Optional)?\((?:"|`)(\w+)(?:"|\.\$)/g)].map(([, group]) => group));
    const unsaid = Object.keys(await words("en")).filter((key) => !text.includes(`"${key}"`) && !groups.has(key.split(".")[0]) && !key.endsWith("_one"));
    assert.deepEqual(unsaid, []);
  });

  it("and colours have their places: no view names a colour of its own", async () => {
    for (const [name, text] of await sources()) assert.doesNotMatch(text.split("<style>")[1] ?? "", /#[0-9a-f]{3,8}\b|\brgba?\(/i, name);
  });

  it("have a sentence in both languages for every error that an instance or a control plane may answer with", async () => {
    const page = await readFile(path.join(src, "../../docs/errors.md"), "utf8");
    // Models and terminals get the other codes.
    const parts = ["Messages and sessions", "Turn failures", "Database", "HTTP and WebSocket", "Control plane"].map((title) => page.split(`\n## ${title}\n`)[1].split("\n## ")[0]);
    const codes = parts.flatMap((part) => part.split("\n").filter((line) => line.startsWith("| `")).flatMap((line) => [...line.split("|")[1].matchAll(/`(\w+)`/g)].map(([, code]) => code)));
    assert.ok(codes.length > 150, String(codes.length));
    const [en, zh] = [await words("en"), await words("zh")];
    assert.deepEqual(codes.filter((code) => !en[`error.${code}`] || !/[\u4e00-\u9fff]/.test(zh[`error.${code}`] ?? "")), []);
  });

  it("have a sentence for one where they have one for many of the same", async () => {
    const [en, zh] = [await words("en"), await words("zh")];
    for (const key of Object.keys(en).filter((name) => name.endsWith("_one"))) {
      for (const all of [en, zh]) assert.match(all[key], /\{n\}|once|1 次/, key);
      assert.ok(en[key.slice(0, -4)], key);
    }
  });

  it("name in both languages every loop that an instance runs", async () => {
    const tasks = await readFile(path.join(src, "../../crates/engine/src/background.rs"), "utf8");
    const names = [...tasks.matchAll(/Self::\w+ => "(\w+)"/g)].map(([, name]) => name);
    assert.ok(names.length > 9, String(names));
    for (const language of ["en", "zh"]) { const all = await words(language); assert.deepEqual(names.filter((name) => !all[`loop.${name}`]), [], language); }
  });

  it("name in both languages what mail is about, who decides about a tool, and what happens", async () => {
    const rust = (file) => readFile(path.join(src, "../../crates", file), "utf8");
    const named = (text) => [...text.matchAll(/=> "([\w.]+)"/g)].map(([, name]) => name);
    const mail = named((await rust("domain/src/team_message.rs")).split("pub fn as_str")[1].split("pub fn parse")[0]).filter((name) => name !== "message");
    const layers = [...(await rust("domain/src/policy.rs")).split("pub enum PolicyLayer {")[1].split("}")[0].matchAll(/^\s+(\w+),/gm)].map(([, name]) => name.toLowerCase());
    const events = named((await rust("domain/src/event.rs")).split("pub fn as_str")[1].split("}\n    }")[0]);
    for (const language of ["en", "zh"]) {
      const all = await words(language);
      for (const [group, names, least] of [["team_message", mail, 5], ["rule_layer", layers, 7], ["event", events, 30]]) {
        assert.ok(names.length >= least, `${group}: ${names}`);
        assert.deepEqual(names.filter((name) => !all[`${group}.${name}`]), [], `${language} ${group}`);
      }
    }
  });

  it("name the rules of skills and the files of agents", async () => {
    const en = await words("en");
    for (const rule of ["open", "allowed", "denied", "not_listed", "no_tool"]) assert.ok(en[`skill_rule.${rule}`], rule);
    for (const file of ["agents", "soul", "identity", "user", "tools", "memory", "heartbeat", "bootstrap"]) assert.ok(en[`overlay.${file}`], file);
  });
});

describe("the types", () => {
  let daemon;
  before(async () => { daemon = await Daemon.start("http://127.0.0.1:9/v1"); });
  after(() => daemon?.remove());

  it("are what the instance says of itself", async () => {
    const document = await daemon.api("GET", "/openapi.json");
    const written = await readFile(path.join(src, "api/instance.types.ts"), "utf8");
    assert.equal(written, typesOf(document), "run: POLYCLAW_TOKEN=… npm run -s types http://…/api/v1/openapi.json > src/api/instance.types.ts");
  });

  it("have a sentence in both languages for every field of an agent that is explained", async () => {
    const { fieldKind, withoutNull } = await source("pages/agents/schema.ts");
    const explained = (fields, before = "") => Object.entries(fields).flatMap(([name, schema]) => {
      const { properties, description } = withoutNull(schema);
      if (before + name === "defaults") return explained(properties);
      return [...(description ? [before + name] : []), ...(fieldKind(name, schema) === "group" ? explained(properties, `${before}${name}.`) : [])];
    });
    const names = explained((await daemon.api("GET", "/openapi.json")).components.schemas.AgentSpec.properties);
    assert.ok(names.includes("model") && names.includes("policy.tools.allow"), String(names));
    const [en, zh] = [await words("en"), await words("zh")];
    assert.deepEqual(names.filter((name) => !en[`help.${name}`] || !/[\u4e00-\u9fff]/.test(zh[`help.${name}`] ?? "")), []);
  });
});

describe("the types of the control plane", () => {
  let plane;
  before(async () => { plane = await new Plane().start(); });
  after(() => plane?.remove());

  it("are what it says of itself", async () => {
    const written = await readFile(path.join(src, "api/control.types.ts"), "utf8");
    assert.equal(written, typesOf(await plane.api("/openapi.json")), "run: POLYCLAW_TOKEN=… npm run -s types http://…/api/openapi.json > src/api/control.types.ts");
  });
});

describe("text that is to be approved", async () => {
  const { escapeHiddenCharacters } = await source("text/hiddenCharacters.ts");
  it("shows what turns it, hides in it or steers", () => {
    assert.equal(escapeHiddenCharacters("All \u202ered\u202c\u200b.\u001b[2J"), "All <U+202E>red<U+202C><U+200B>.<U+001B>[2J");
    assert.equal(escapeHiddenCharacters("\u{e0041}x"), "<U+E0041>x");
    assert.equal(escapeHiddenCharacters("a\r\nb\tc 👩\u200d🚀"), "a\nb\tc 👩\u200d🚀");
  });
});

describe("markdown", async () => {
  const { parseMarkdown } = await source("text/markdown.ts");
  const text = (inside) => inside.map((one) => (one.inside ? `${one.type}(${text(one.inside)})` : one.type === "break" ? "⏎" : one.type === "code" ? `code(${one.text})` : one.text)).join("");
  const shown = (block) => ({
    paragraph: () => text(block.inside), heading: () => `h${block.level}(${text(block.inside)})`, code: () => `block(${block.name}:${block.text})`, rule: () => "rule",
    quote: () => `quote(${block.inside.map(shown)})`, list: () => `list${block.start ?? ""}(${block.items.map((item) => item.map(shown).join("+")).join("|")})`,
    table: () => `table(${block.head.map(text)};${block.rows.map((row) => row.map(text).join(",")).join(";")})`,
  })[block.type]();
  const rows = [
    ["a plain line\nand another", "a plain line⏎and another"],
    ["**bold**, *leaning* and `code <b>`", "strong(bold), em(leaning) and code(code <b>)"],
    ["# One\n### Three", "h3(One) h4(Three)"],
    ["- a\n- b\n  - c\n\nafter", "list(a|b+list(c)) after"],
    ["3. c\n4. d", "list3(c|d)"],
    ["> quoted\n> more", "quote(quoted⏎more)"],
    ["|a|b|\n|-|-|\n|1|**2**|", "table(a,b;1,strong(2))"],
    ["a\n\n---\n\nb", "a rule b"],
    ["```js\nlet a;\n\n<b>\n```\nafter", "block(js:let a;\n\n<b>) after"],
    ["```js\nnot ended", "block(js:not ended)"],
    ["[a](https://a.example/b_(c)) x", "link(a) x"],
    ["see https://a.example/x.", "see link(https://a.example/x)."],
    ["[x](javascript:alert(1)) [y](//evil.example) [z](data:text/html,hi)", "[x](javascript:alert(1)) [y](//evil.example) [z](data:text/html,hi)"],
    ["<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"],
    ["snake_case_name and 2*3*4", "snake_case_name and 2*3*4"],
  ];
  it("knows what it knows, and the rest stays text", () => {
    for (const [given, wanted] of rows) assert.equal(parseMarkdown(given).map(shown).join(" "), wanted, given);
  });

  it("is done quickly with what is meant to slow it down", async () => {
    for (const piece of ["*", "`", "[", "[a](", "- ", "> ", "  ", "https://", "|-", "_a", "~~a", "# ", "**a"]) {
      const took = await growth((size) => {
        const given = piece.repeat(size / piece.length);
        const start = performance.now();
        parseMarkdown(given);
        return performance.now() - start;
      });
      assert.ok(took < 3, `${piece}: twice as much took ${took} times as long`);
    }
  });
});

describe("a call that somebody denied, or that was stopped before it ran", () => {
  it("is known by the sentence that the engine says of it", async () => {
    const files = ["pages/chat/ToolCard.svelte", "../../crates/engine/src/approval.rs", "../../crates/engine/src/turn/end.rs"];
    const [card, approval, end] = await Promise.all(files.map((file) => readFile(path.join(src, file), "utf8")));
    const [denied, stopped] = [...card.matchAll(/startsWith\("(.+?)"\)/g)].map(([, said]) => said);
    assert.ok(approval.includes(`"${denied} `), denied);
    assert.ok(end.includes(`"${stopped}"`), stopped);
  });
});

describe("differences", async () => {
  const { diffLines, hunks } = await source("text/diff.ts");
  const signs = { same: " ", removed: "-", added: "+" };
  const shown = (before, after) => diffLines(before, after).map((line) => signs[line.kind] + line.text).join(",");
  it("are the lines that went and came", () => {
    assert.equal(shown("a\nb\nc", "a\nx\nc\nd"), " a,-b,+x, c,+d");
    assert.equal(shown("a", "a"), " a");
    assert.equal(shown("", "a\nb"), "-,+a,+b");
    assert.equal(shown("a\nb\nc\nd", "b\nd"), "-a, b,-c, d");
  });
  it("come with a few lines around them, and the rest is left out", () => {
    const long = Array.from({ length: 100 }, (_, n) => `line ${n}`);
    const parts = hunks(diffLines(long.join("\n"), long.with(10, "x").with(80, "y").join("\n")));
    assert.deepEqual(parts.map((part) => part.length), [8, 8]);
    assert.equal(parts[0].find((line) => line.kind === "removed").before, 11);
  });
});

describe("a lost line", async () => {
  const { reconnectDelay, RECONNECT_DELAYS_S } = await source("api/socket.ts");
  it("is tried again after 1, 2, 4, 8, 16, 30 and then every 30 seconds, a little sooner or later", () => {
    assert.deepEqual([1, 2, 3, 4, 5, 6, 7, 99].map((failures) => reconnectDelay(failures, 0.5)), [...RECONNECT_DELAYS_S, 30, 30].map((s) => s * 1000));
    assert.deepEqual([reconnectDelay(1, 0), Math.round(reconnectDelay(1, 1))], [800, 1200]);
  });
});

describe("a tree of sessions", async () => {
  const { sessionTree } = await source("pages/sessions/sessionTree.ts");
  const session = (session_key, owner_session_key = null) => ({ session_key, owner_session_key });
  const shown = (branches) => branches.map((one) => one.id + (one.children.length ? `(${shown(one.children)})` : "")).join(" ");
  it("puts each under its owner, and loses none whose owner is not there or who own each other", () => {
    assert.equal(shown(sessionTree([session("a"), session("b", "a"), session("c", "b"), session("d", "gone")])), "a(b(c)) d");
    assert.equal(shown(sessionTree([session("a", "b"), session("b", "a")])).match(/[ab]/g).length, 2);
  });
});

describe("a turn that streams", async () => {
  const { LiveTurn } = await source("live/liveTurn.svelte.ts");
  const frame = (event, fields = {}) => ({ event, turn_id: "t", session_key: "s", ...fields });
  const after = (...frames) => {
    const turn = new LiveTurn("t");
    for (const [event, fields] of frames) turn.handleFrame(frame(event, fields));
    turn.flush();
    return turn.items.map((item) => `${item.kind}:${item.text ?? item.name ?? item.tool}${item.state ? `=${item.state}` : ""}${item.live ? "…" : ""}`);
  };
  const started = ["turn.started", { agent_id: "main", resumes: [] }];
  const speaker = { run_id: "r", agent_id: "research", name: "Research" };
  const rows = [
    ["text in pieces", [started, ["turn.delta", { text: "a" }], ["turn.delta", { text: "b" }]], ["text:ab…"]],
    ["a tool between texts", [started, ["turn.delta", { text: "a" }], ["tool.started", { call_id: "c", name: "ls", arguments: {} }], ["tool.ended", { call_id: "c", name: "ls", is_error: false, text: "x", sandbox: null }], ["turn.delta", { text: "b" }]], ["text:a", "tool:ls=done", "text:b…"]],
    ["a fallback that starts over", [started, ["turn.delta", { text: "a" }], ["turn.restarted"], ["turn.delta", { text: "b" }]], ["text:b…"]],
    ["a turn that starts again", [started, ["turn.delta", { text: "a" }], started, ["turn.delta", { text: "b" }]], ["text:b…"]],
    ["a turn joined in the middle", [["turn.delta", { text: "b" }]], ["text:… b…"]],
    ["another agent, live under its name, whole at its end", [started, ["turn.delta", { text: "I ask." }], ["delegate.started", speaker], ["delegate.delta", { ...speaker, text: "so f" }], ["delegate.delta", { ...speaker, text: "ar" }]], ["text:I ask.", "delegate:so far…"]],
    ["another agent that begins again", [started, ["delegate.started", speaker], ["delegate.delta", { ...speaker, text: "no" }], ["delegate.started", speaker], ["delegate.delta", { ...speaker, text: "yes" }], ["delegate.ended", { ...speaker, text: "yes.", is_whole: true }]], ["delegate:yes."]],
  ];
  it("shows what counts, in order", () => {
    for (const [name, frames, wanted] of rows) assert.deepEqual(after(...frames), wanted, name);
  });
});

describe("stored messages, as they are shown", async () => {
  const { buildChatEntries } = await source("live/chatEntries.ts");
  const message = (position, role, origin, text, more = {}) => ({ id: `m${position}`, position, turn_id: "t", role, origin, text, parts: [], meta: null, channel: "web", created_at: "", ...more });
  const called = (position, name) => message(position, "assistant", "agent:main", "", { parts: [{ type: "tool_call", id: "c", name, arguments: {} }] });
  const answered = (position, told) => message(position, "tool", "agent:main", JSON.stringify(told), { parts: [{ type: "tool_result", call_id: "c" }] });
  const announce = (position, run, status = "ok") => message(position, "user", "agent:expert", "[@agent:Expert#expert] finish", { meta: { kind: "subagent_announce", source_run_id: run, source_agent_name: "Expert", task: { label: "the hard part" }, result: { status, summary: "42" } } });
  const shown = (entry) => `${entry.kind}:${entry.note ?? entry.team ?? entry.text}${entry.failed ? "!" : ""}${(entry.tools ?? []).map((tool) => `[${tool.name}${tool.delegateReply ? ` heard ${tool.delegateReply.text}` : ""}]`).join("")}`;
  const rows = [
    ["a command stands behind what was the last when it was asked", [message(1, "user", "user", "a"), message(5, "assistant", "agent:main", "b")], [{ after: 1, text: "/help" }, { after: 9, text: "/usage" }], ["user:a", "command_output:/help", "reply:b", "command_output:/usage"]],
    ["a command stands behind all of the turn that ran when it was asked", [message(1, "user", "user", "a"), message(2, "assistant", "agent:main", "b"), message(3, "user", "user", "c", { turn_id: "u" })], [{ after: 0, turn: "t", text: "/help" }], ["user:a", "reply:b", "command_output:/help", "user:c"]],
    ["a result is said by who found it", [announce(1, "r"), announce(2, "s", "failed")], [], ["result:42", "result:42!"]],
    ["what was heard while it was said is shown once", [called(1, "delegate_to_agent"), answered(2, { streamed: true, response: "forty-two", run_id: "r" }), announce(3, "r")], [], ["reply:[delegate_to_agent heard forty-two]"]],
    ["what was not heard comes as a result", [called(1, "delegate_to_agent"), answered(2, { streamed: false, response: "forty-two", run_id: "r" }), announce(3, "r")], [], ["reply:[delegate_to_agent]", "result:42"]],
    ["who waits for others is not silent", [called(1, "sessions_yield"), message(2, "assistant", "agent:main", "", { meta: { silent: true } })], [], ["reply:[sessions_yield]", "note:yields"]],
    ["news of a team", [message(1, "user", "agent:main", "[@team:x] news", { meta: { kind: "team_news", team: "x" } })], [], ["team_update:x"]],
  ];
  it("stand where they belong, each once, in words", () => {
    for (const [name, messages, said, wanted] of rows) assert.deepEqual(buildChatEntries(messages, {}, said).map(shown), wanted, name);
  });
});

describe("a turn that was stopped", async () => {
  const { buildChatEntries } = await source("live/chatEntries.ts");
  const end = (meta, text = "Stopped.") => ({ id: "m", position: 1, turn_id: "t", role: "assistant", origin: "agent:main", text, parts: [], meta, created_at: "" });
  it("keeps what was heard of it, and says that it was stopped where nothing was", () => {
    assert.deepEqual(buildChatEntries([end({ error: "stopped", said: "Half an" })]).map((one) => [one.kind, one.text]), [["stopped_reply", "Half an"]]);
    assert.deepEqual(buildChatEntries([end({ error: "stopped" })]).map((one) => [one.kind, one.note]), [["note", "stopped"]]);
  });
  it("by a failure has what was heard before what went wrong", () => {
    assert.deepEqual(buildChatEntries([end({ error: "provider", said: "Half an" }, "It broke.")]).map((one) => [one.kind, one.partialText, one.text, one.failed]), [["reply", "Half an", "It broke.", true]]);
  });
});

describe("what was asked of an instance, as the audit has it", async () => {
  const { parseProxiedRequest } = await source("text/proxiedRequest.ts");
  it("is told without its address", () => {
    assert.deepEqual(parseProxiedRequest("main: POST /api/v1/sessions/agent%3Amain%3Aweb/messages → 200"), { method: "POST", noun: "sessions", id: "agent:main:web", rest: "messages", status: 200 });
    assert.deepEqual(parseProxiedRequest("main: DELETE /api/v1/agents/ops"), { method: "DELETE", noun: "agents", id: "ops", rest: "", status: null });
    assert.equal(parseProxiedRequest("main: PATCH /api/v1/sessions/cut%3").id, "cut%3");
    assert.equal(parseProxiedRequest("name=main"), null);
  });
});

describe("a line of a log", async () => {
  const { parseLogLine } = await source("text/logLine.ts");
  const rows = [
    ["INFO drained", "drained", ""],
    ['INFO turn{turn.id=1 agent.id=main}: turn ended state=done model="a b"', "turn ended", 'state=done model="a b" turn{turn.id=1 agent.id=main}:'],
    ["WARN a:b{x=1}:c{y=2}: slow tool", "slow tool", "a:b{x=1}:c{y=2}:"],
    ["INFO kind=x y=1", "kind=x y=1", ""],
    ["ERROR it is 3 = three: no", "it is 3 = three: no", ""],
  ];
  it("begins with what it says", () => {
    for (const [text, message, facts] of rows) {
      const line = parseLogLine(`2026-01-01T00:00:00.000Z  ${text}`, 0);
      assert.deepEqual([line.message, line.fields], [message, facts], text);
    }
    assert.equal(parseLogLine("  at main.rs", 0).message, "  at main.rs");
  });
});

describe("the tasks of a team, read page by page", async () => {
  const { isComplete, mergeTasks, taskCounts } = await source("live/teamTasks.svelte.ts");
  const task = (task_id, status, blocked_by = []) => ({ task_id, status, blocked_by });
  it("are those that the server counts, each once, as they were read last", () => {
    const tasks = mergeTasks([task(1, "claimed"), task(3, "pending", [1])], [task(1, "pending"), task(2, "completed")]);
    assert.deepEqual(tasks.map((one) => `${one.task_id} ${one.status}`), ["3 pending", "2 completed", "1 claimed"]);
    assert.ok(isComplete(tasks, taskCounts({ counts: { blocked: 1, in_progress: 1, completed: 1 } })));
    assert.ok(!isComplete(tasks, taskCounts({ counts: { pending: 1, in_progress: 1, completed: 1 } })));
  });
});

describe("the end of a long list", async () => {
  const { findLastNumber } = await source("live/lastNumber.ts");
  it("is found with few looks", async () => {
    for (const last of [0, 1, 1023, 1024, 1025, 999_999]) {
      let looks = 0;
      const found = await findLastNumber(async (number) => { looks += 1; return last > number; });
      assert.ok(found >= last && found <= Math.max(last, 1) && looks < 40, `${last}: ${found} after ${looks} looks`);
    }
  });
});

describe("the list of sessions, read again", async () => {
  const { mergeSessions } = await source("pages/chat/sessionList.svelte.ts");
  const session = (session_key, updated_at) => ({ session_key, updated_at });
  it("brings what moved to the front, keeps what is older, and lets go what is gone", () => {
    const known = [session("a", "9"), session("b", "8"), session("c", "7"), session("d", "2"), session("e", "1")];
    const page = [session("e", "10"), session("a", "9"), session("c", "7")];
    assert.deepEqual(mergeSessions(page, known).map((one) => one.session_key), ["e", "a", "c", "d"]);
  });
});

describe("a change of a spec", async () => {
  const { mergePatch, parseFieldText } = await source("pages/agents/schema.ts");
  it("is a merge patch that says only what is other", () => {
    assert.deepEqual(mergePatch({ a: 1, b: { c: 1, d: 2 }, e: 5 }, { a: 1, b: { c: 1, d: 3 }, f: [1] }), { b: { d: 3 }, e: null, f: [1] });
  });
  it("reads fields as what they are", () => {
    assert.deepEqual([parseFieldText("number", " 2.5 "), parseFieldText("list", "a\n\n b "), parseFieldText("switch", "true"), parseFieldText("text", "  ")], [2.5, ["a", "b"], true, undefined]);
  });
});

describe("how long turns take", async () => {
  const { turnDurations } = await source("pages/usage/turnDurations.ts");
  const turn = (agent_id, seconds, began = 1000) => ({ agent_id, model: null, started_at: new Date(began).toISOString(), ended_at: seconds === null ? null : new Date(began + seconds * 1000).toISOString() });
  it("is said for each agent: what half of them and nearly all of them stay below", () => {
    const turns = [...Array.from({ length: 20 }, (_, n) => turn("quick", n + 1)), turn("slow", 60), turn("slow", null), turn("old", 5, 0)];
    assert.deepEqual(turnDurations(turns, 500, (one) => one.agent_id), [{ group: "slow", turns: 1, median: 60_000, p95: 60_000 }, { group: "quick", turns: 20, median: 10_000, p95: 19_000 }]);
    assert.deepEqual(turnDurations(turns, 0, (one) => one.model), []);
  });
});

describe("what an instance did in a day", async () => {
  const { turnsPerHour } = await source("pages/fleet/turnsPerHour.ts");
  const now = Date.parse("2026-05-02T12:30:00Z");
  const at = (time) => Date.parse(`2026-05-0${time}:00Z`);

  it("is counted by the hour, the newest last; an hour without a turn has none", () => {
    const hours = turnsPerHour([at("2T12:10"), at("2T12:29"), at("2T10:59"), at("1T13:00"), at("1T12:59")], 0, now);
    assert.deepEqual([hours.length, hours.at(-1), hours.at(-2), hours.at(-3), hours[0]], [24, 2, 0, 1, 1]);
  });

  it("is not known before the oldest turn that was read", () => {
    const hours = turnsPerHour([at("2T11:10")], at("2T11:10"), now);
    assert.deepEqual(hours.slice(-3), [null, 1, 0]);
  });
});

describe("a moment of a list", async () => {
  const { formatListTime } = await source("i18n/format.ts");

  it("has its day where that is not today", () => {
    const now = new Date(2026, 4, 2, 12);
    assert.equal(formatListTime(new Date(2026, 4, 2, 9, 5, 7).toISOString(), now), "09:05:07");
    assert.equal(formatListTime(new Date(2026, 4, 1, 23, 59, 0).toISOString(), now), "1 May 23:59:00");
  });
});

describe("types of a document", () => {
  it("keep what alternatives have in common, and single words", () => {
    const schemas = { Frame: { type: "object", properties: { seq: { type: "integer" } }, required: ["seq"], oneOf: [{ type: "object", properties: { event: { const: "a" } }, required: ["event"] }, { type: "object", properties: { event: { const: "b" } } }] } };
    const text = typesOf({ info: { title: "x" }, components: { schemas } }).replace(/\s+/g, " ");
    assert.match(text, /export type Frame = \{ seq: number; \} & \(\{ event: "a"; \} \| \{ event\?: "b"; \}\);/);
  });
});

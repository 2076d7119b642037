// Unit tests of the page's modules: translations, types, markdown, diffs, retry delays and others.
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

describe("translations", () => {
  it("have the same keys and placeholders in both languages", async () => {
    const [en, zh] = [await words("en"), await words("zh")];
    assert.deepEqual(Object.keys(en), Object.keys(zh));
    const gaps = (text) => [...text.matchAll(/\{\w+\}/g)].map(([gap]) => gap).sort();
    for (const key of Object.keys(en)) assert.deepEqual(gaps(zh[key]), gaps(en[key]), key);
  });

  it("exist for every key in use, and no view injects HTML or inline styles", async () => {
    const en = await words("en");
    for (const [name, text] of await sources()) {
      for (const [, key] of text.matchAll(/\bt\("([^"]+)"/g)) assert.ok(key in en, `${name} uses ${key}`);
      assert.doesNotMatch(text, /\{@html|innerHTML|insertAdjacentHTML|document\.write|\beval\(/, name);
      if (name.endsWith(".svelte")) assert.doesNotMatch(text.replace(/<style>[\s\S]*<\/style>/, ""), /\sstyle="/, `${name}: the policy forbids inline styles`);
    }
  });

  it("are all in use", async () => {
    const text = (await sources()).map(([, one]) => one).join("\n");
    const groups = new Set([...text.matchAll(/\bt(?:Value|Optional)?\((?:"|`)(\w+)(?:"|\.\$)/g)].map(([, group]) => group));
    const unsaid = Object.keys(await words("en")).filter((key) => !text.includes(`"${key}"`) && !groups.has(key.split(".")[0]) && !key.endsWith("_one"));
    assert.deepEqual(unsaid, []);
  });

  it("are separate from colours: no view defines its own colours", async () => {
    for (const [name, text] of await sources()) assert.doesNotMatch(text.split("<style>")[1] ?? "", /#[0-9a-f]{3,8}\b|\brgba?\(/i, name);
  });

  it("cover every error code of instance and control plane in both languages", async () => {
    const page = await readFile(path.join(src, "../../docs/errors.md"), "utf8");
    // The other codes are for models and terminals only.
    const parts = ["Messages and sessions", "Turn failures", "Database", "HTTP and WebSocket", "Control plane"].map((title) => page.split(`\n## ${title}\n`)[1].split("\n## ")[0]);
    const codes = parts.flatMap((part) => part.split("\n").filter((line) => line.startsWith("| `")).flatMap((line) => [...line.split("|")[1].matchAll(/`(\w+)`/g)].map(([, code]) => code)));
    assert.ok(codes.length > 150, String(codes.length));
    const [en, zh] = [await words("en"), await words("zh")];
    assert.deepEqual(codes.filter((code) => !en[`error.${code}`] || !/[\u4e00-\u9fff]/.test(zh[`error.${code}`] ?? "")), []);
  });

  it("have a plural form for every singular form", async () => {
    const [en, zh] = [await words("en"), await words("zh")];
    for (const key of Object.keys(en).filter((name) => name.endsWith("_one"))) {
      for (const all of [en, zh]) assert.match(all[key], /\{n\}|once|1 次/, key);
      assert.ok(en[key.slice(0, -4)], key);
    }
  });

  it("name every background loop in both languages", async () => {
    const tasks = await readFile(path.join(src, "../../crates/engine/src/background.rs"), "utf8");
    const names = [...tasks.matchAll(/Self::\w+ => "(\w+)"/g)].map(([, name]) => name);
    assert.ok(names.length > 9, String(names));
    for (const language of ["en", "zh"]) { const all = await words(language); assert.deepEqual(names.filter((name) => !all[`loop.${name}`]), [], language); }
  });

  it("name team message kinds, policy layers and events in both languages", async () => {
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

  it("name skill rules and agent files", async () => {
    const en = await words("en");
    for (const rule of ["open", "allowed", "denied", "not_listed", "no_tool"]) assert.ok(en[`skill_rule.${rule}`], rule);
    for (const file of ["agents", "soul", "identity", "user", "tools", "memory", "heartbeat", "bootstrap"]) assert.ok(en[`overlay.${file}`], file);
  });
});

describe("instance API types", () => {
  let daemon;
  before(async () => { daemon = await Daemon.start("http://127.0.0.1:9/v1"); });
  after(() => daemon?.remove());

  it("match the instance's OpenAPI document", async () => {
    const document = await daemon.api("GET", "/openapi.json");
    const written = await readFile(path.join(src, "api/instance.types.ts"), "utf8");
    assert.equal(written, typesOf(document), "run: POLYCLAW_TOKEN=… npm run -s types http://…/api/v1/openapi.json > src/api/instance.types.ts");
  });

  it("have help texts in both languages for every described agent field", async () => {
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

describe("control plane API types", () => {
  let plane;
  before(async () => { plane = await new Plane().start(); });
  after(() => plane?.remove());

  it("match the control plane's OpenAPI document", async () => {
    const written = await readFile(path.join(src, "api/control.types.ts"), "utf8");
    assert.equal(written, typesOf(await plane.api("/openapi.json")), "run: POLYCLAW_TOKEN=… npm run -s types http://…/api/openapi.json > src/api/control.types.ts");
  });
});

describe("text for approval", async () => {
  const { escapeHiddenCharacters } = await source("text/hiddenCharacters.ts");
  it("shows bidi, invisible and control characters", () => {
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
  it("parses supported syntax and keeps the rest as text", () => {
    for (const [given, wanted] of rows) assert.equal(parseMarkdown(given).map(shown).join(" "), wanted, given);
  });

  it("takes linear time for adversarial input", async () => {
    for (const piece of ["*", "`", "[", "[a](", "- ", "> ", "  ", "https://", "|-", "_a", "~~a", "# ", "**a"]) {
      const took = await growth((size) => {
        const given = piece.repeat(size / piece.length);
        const start = performance.now();
        parseMarkdown(given);
        return performance.now() - start;
      });
      assert.ok(took < 3, `${piece}: doubling the input took ${took} times as long`);
    }
  });
});

describe("denied or stopped tool call", () => {
  it("is recognized by the engine's message", async () => {
    const files = ["pages/chat/ToolCard.svelte", "../../crates/engine/src/approval.rs", "../../crates/engine/src/turn/end.rs"];
    const [card, approval, end] = await Promise.all(files.map((file) => readFile(path.join(src, file), "utf8")));
    const [denied, stopped] = [...card.matchAll(/startsWith\("(.+?)"\)/g)].map(([, said]) => said);
    assert.ok(approval.includes(`"${denied} `), denied);
    assert.ok(end.includes(`"${stopped} `), stopped);
  });
});

describe("diff", async () => {
  const { diffLines, hunks } = await source("text/diff.ts");
  const signs = { same: " ", removed: "-", added: "+" };
  const shown = (before, after) => diffLines(before, after).map((line) => signs[line.kind] + line.text).join(",");
  it("lists removed and added lines", () => {
    assert.equal(shown("a\nb\nc", "a\nx\nc\nd"), " a,-b,+x, c,+d");
    assert.equal(shown("a", "a"), " a");
    assert.equal(shown("", "a\nb"), "-,+a,+b");
    assert.equal(shown("a\nb\nc\nd", "b\nd"), "-a, b,-c, d");
  });
  it("groups changes with a few context lines", () => {
    const long = Array.from({ length: 100 }, (_, n) => `line ${n}`);
    const parts = hunks(diffLines(long.join("\n"), long.with(10, "x").with(80, "y").join("\n")));
    assert.deepEqual(parts.map((part) => part.length), [8, 8]);
    assert.equal(parts[0].find((line) => line.kind === "removed").before, 11);
  });
});

describe("lost connection", async () => {
  const { reconnectDelay, RECONNECT_DELAYS_S } = await source("api/socket.ts");
  it("is retried after 1, 2, 4, 8, 16, 30 and then every 30 seconds, with jitter", () => {
    assert.deepEqual([1, 2, 3, 4, 5, 6, 7, 99].map((failures) => reconnectDelay(failures, 0.5)), [...RECONNECT_DELAYS_S, 30, 30].map((s) => s * 1000));
    assert.deepEqual([reconnectDelay(1, 0), Math.round(reconnectDelay(1, 1))], [800, 1200]);
  });
});

describe("session tree", async () => {
  const { sessionTree } = await source("pages/sessions/sessionTree.ts");
  const session = (session_key, owner_session_key = null) => ({ session_key, owner_session_key });
  const shown = (branches) => branches.map((one) => one.id + (one.children.length ? `(${shown(one.children)})` : "")).join(" ");
  it("puts each session under its owner and keeps orphans and cycles", () => {
    assert.equal(shown(sessionTree([session("a"), session("b", "a"), session("c", "b"), session("d", "gone")])), "a(b(c)) d");
    assert.equal(shown(sessionTree([session("a", "b"), session("b", "a")])).match(/[ab]/g).length, 2);
  });
});

describe("streaming turn", async () => {
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
    ["a fallback that restarts", [started, ["turn.delta", { text: "a" }], ["turn.restarted"], ["turn.delta", { text: "b" }]], ["text:b…"]],
    ["a turn that starts again", [started, ["turn.delta", { text: "a" }], started, ["turn.delta", { text: "b" }]], ["text:b…"]],
    ["a turn joined in the middle", [["turn.delta", { text: "b" }]], ["text:… b…"]],
    ["a delegate streams under its name", [started, ["turn.delta", { text: "I ask." }], ["delegate.started", speaker], ["delegate.delta", { ...speaker, text: "so f" }], ["delegate.delta", { ...speaker, text: "ar" }]], ["text:I ask.", "delegate:so far…"]],
    ["a delegate that restarts", [started, ["delegate.started", speaker], ["delegate.delta", { ...speaker, text: "no" }], ["delegate.started", speaker], ["delegate.delta", { ...speaker, text: "yes" }], ["delegate.ended", { ...speaker, text: "yes.", is_whole: true }]], ["delegate:yes."]],
  ];
  it("shows its items in order", () => {
    for (const [name, frames, wanted] of rows) assert.deepEqual(after(...frames), wanted, name);
  });
});

describe("stored messages", async () => {
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
  it("are shown once and in order", () => {
    for (const [name, messages, said, wanted] of rows) assert.deepEqual(buildChatEntries(messages, {}, said).map(shown), wanted, name);
  });
});

describe("stopped turn", async () => {
  const { buildChatEntries } = await source("live/chatEntries.ts");
  const end = (meta, text = "Stopped.") => ({ id: "m", position: 1, turn_id: "t", role: "assistant", origin: "agent:main", text, parts: [], meta, created_at: "" });
  it("keeps its partial text, or shows a note if there is none", () => {
    assert.deepEqual(buildChatEntries([end({ error: "stopped", said: "Half an" })]).map((one) => [one.kind, one.text]), [["stopped_reply", "Half an"]]);
    assert.deepEqual(buildChatEntries([end({ error: "stopped" })]).map((one) => [one.kind, one.note]), [["note", "stopped"]]);
  });
  it("shows partial text before the error of a failed turn", () => {
    assert.deepEqual(buildChatEntries([end({ error: "provider", said: "Half an" }, "It broke.")]).map((one) => [one.kind, one.partialText, one.text, one.failed]), [["reply", "Half an", "It broke.", true]]);
  });
});

describe("proxied call in the audit log", async () => {
  const { parseProxiedRequest } = await source("text/proxiedRequest.ts");
  it("is parsed from its entry", () => {
    assert.deepEqual(parseProxiedRequest("main: POST /api/v1/sessions/agent%3Amain%3Aweb/messages → 200"), { method: "POST", noun: "sessions", id: "agent:main:web", rest: "messages", status: 200 });
    assert.deepEqual(parseProxiedRequest("main: DELETE /api/v1/agents/ops"), { method: "DELETE", noun: "agents", id: "ops", rest: "", status: null });
    assert.equal(parseProxiedRequest("main: PATCH /api/v1/sessions/cut%3").id, "cut%3");
    assert.equal(parseProxiedRequest("name=main"), null);
  });
});

describe("log line", async () => {
  const { parseLogLine } = await source("text/logLine.ts");
  const rows = [
    ["INFO drained", "drained", ""],
    ['INFO turn{turn.id=1 agent.id=main}: turn ended state=done model="a b"', "turn ended", 'state=done model="a b" turn{turn.id=1 agent.id=main}:'],
    ["WARN a:b{x=1}:c{y=2}: slow tool", "slow tool", "a:b{x=1}:c{y=2}:"],
    ["INFO kind=x y=1", "kind=x y=1", ""],
    ["ERROR it is 3 = three: no", "it is 3 = three: no", ""],
  ];
  it("starts with its message", () => {
    for (const [text, message, facts] of rows) {
      const line = parseLogLine(`2026-01-01T00:00:00.000Z  ${text}`, 0);
      assert.deepEqual([line.message, line.fields], [message, facts], text);
    }
    assert.equal(parseLogLine("  at main.rs", 0).message, "  at main.rs");
  });
});

describe("paged team tasks", async () => {
  const { isComplete, mergeTasks, taskCounts } = await source("live/teamTasks.svelte.ts");
  const task = (task_id, status, blocked_by = []) => ({ task_id, status, blocked_by });
  it("are merged once each with the newest state and checked against the counts", () => {
    const tasks = mergeTasks([task(1, "claimed"), task(3, "pending", [1])], [task(1, "pending"), task(2, "completed")]);
    assert.deepEqual(tasks.map((one) => `${one.task_id} ${one.status}`), ["3 pending", "2 completed", "1 claimed"]);
    assert.ok(isComplete(tasks, taskCounts({ counts: { blocked: 1, in_progress: 1, completed: 1 } })));
    assert.ok(!isComplete(tasks, taskCounts({ counts: { pending: 1, in_progress: 1, completed: 1 } })));
  });
});

describe("end of a long list", async () => {
  const { findLastNumber } = await source("live/lastNumber.ts");
  it("is found with few requests", async () => {
    for (const last of [0, 1, 1023, 1024, 1025, 999_999]) {
      let looks = 0;
      const found = await findLastNumber(async (number) => { looks += 1; return last > number; });
      assert.ok(found >= last && found <= Math.max(last, 1) && looks < 40, `${last}: ${found} after ${looks} looks`);
    }
  });
});

describe("reloaded session list", async () => {
  const { mergeSessions } = await source("pages/chat/sessionList.svelte.ts");
  const session = (session_key, updated_at) => ({ session_key, updated_at });
  it("moves changed sessions to the front, keeps older ones and drops removed ones", () => {
    const known = [session("a", "9"), session("b", "8"), session("c", "7"), session("d", "2"), session("e", "1")];
    const page = [session("e", "10"), session("a", "9"), session("c", "7")];
    assert.deepEqual(mergeSessions(page, known).map((one) => one.session_key), ["e", "a", "c", "d"]);
  });
});

describe("agent spec change", async () => {
  const { mergePatch, parseFieldText } = await source("pages/agents/schema.ts");
  it("is a merge patch with only the changed fields", () => {
    assert.deepEqual(mergePatch({ a: 1, b: { c: 1, d: 2 }, e: 5 }, { a: 1, b: { c: 1, d: 3 }, f: [1] }), { b: { d: 3 }, e: null, f: [1] });
  });
  it("converts form fields to their types", () => {
    assert.deepEqual([parseFieldText("number", " 2.5 "), parseFieldText("list", "a\n\n b "), parseFieldText("switch", "true"), parseFieldText("text", "  ")], [2.5, ["a", "b"], true, undefined]);
  });
});

describe("turn latency", async () => {
  const { turnDurations } = await source("pages/usage/turnDurations.ts");
  const turn = (agent_id, seconds, began = 1000) => ({ agent_id, model: null, started_at: new Date(began).toISOString(), ended_at: seconds === null ? null : new Date(began + seconds * 1000).toISOString() });
  it("is the median and the 95th percentile per agent", () => {
    const turns = [...Array.from({ length: 20 }, (_, n) => turn("quick", n + 1)), turn("slow", 60), turn("slow", null), turn("old", 5, 0)];
    assert.deepEqual(turnDurations(turns, 500, (one) => one.agent_id), [{ group: "slow", turns: 1, median: 60_000, p95: 60_000 }, { group: "quick", turns: 20, median: 10_000, p95: 19_000 }]);
    assert.deepEqual(turnDurations(turns, 0, (one) => one.model), []);
  });
});

describe("hourly activity", async () => {
  const { turnsPerHour } = await source("pages/fleet/turnsPerHour.ts");
  const now = Date.parse("2026-05-02T12:30:00Z");
  const at = (time) => Date.parse(`2026-05-0${time}:00Z`);

  it("counts turns per hour, newest last, with zero for empty hours", () => {
    const hours = turnsPerHour([at("2T12:10"), at("2T12:29"), at("2T10:59"), at("1T13:00"), at("1T12:59")], 0, now);
    assert.deepEqual([hours.length, hours.at(-1), hours.at(-2), hours.at(-3), hours[0]], [24, 2, 0, 1, 1]);
  });

  it("is unknown before the oldest turn that was read", () => {
    const hours = turnsPerHour([at("2T11:10")], at("2T11:10"), now);
    assert.deepEqual(hours.slice(-3), [null, 1, 0]);
  });
});

describe("list timestamp", async () => {
  const { formatListTime } = await source("i18n/format.ts");

  it("shows the date if it is not today", () => {
    const now = new Date(2026, 4, 2, 12);
    assert.equal(formatListTime(new Date(2026, 4, 2, 9, 5, 7).toISOString(), now), "09:05:07");
    assert.equal(formatListTime(new Date(2026, 4, 1, 23, 59, 0).toISOString(), now), "1 May 23:59:00");
  });
});

describe("types from an OpenAPI document", () => {
  it("keep common properties of alternatives and constants", () => {
    const schemas = { Frame: { type: "object", properties: { seq: { type: "integer" } }, required: ["seq"], oneOf: [{ type: "object", properties: { event: { const: "a" } }, required: ["event"] }, { type: "object", properties: { event: { const: "b" } } }] } };
    const text = typesOf({ info: { title: "x" }, components: { schemas } }).replace(/\s+/g, " ");
    assert.match(text, /export type Frame = \{ seq: number; \} & \(\{ event: "a"; \} \| \{ event\?: "b"; \}\);/);
  });
});

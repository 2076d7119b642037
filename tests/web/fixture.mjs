// A small world for the page: two real instances behind a control plane, with some history.
import { Daemon, TOKEN } from "./daemon.mjs";
import { Control } from "./control/server.mjs";
import { ConfigFile } from "./control/config.mjs";
import { Model, followsTool, lastUserText } from "./model.mjs";

const CONFIG = `# The first instance.
schema = 1

[gateway]
port = 18801

[providers.scripted]
kind = "openai_compatible"
base_url = "http://127.0.0.1:9/v1"
api_key = "a-key-for-tests"
models = ["steady"]
`;

export async function world() {
  const model = await new Model().start();
  const daemon = await Daemon.start(model.url);
  const control = new Control();
  control.daemons = new Map();
  await control.start();
  const main = control.instances.create({ name: "main" });
  const lab = control.instances.create({ name: "research-lab" });
  control.instances.start(main);
  control.daemons.set(main.id, { url: daemon.url, token: TOKEN });
  control.configs.set(main.id, new ConfigFile(CONFIG));
  return { model, daemon, control, main, lab, async end() { await control.stop(); await daemon.remove(); model.stop(); } };
}

const at = (minutes) => new Date(Date.now() - minutes * 60_000).toISOString();

/** Something to see in every view. */
export async function furnish({ model, daemon, control, main, lab }) {
  const shop = control.instances.create({ name: "shop-support" });
  control.instances.start(shop);
  control.instances.crash(shop, "port 18803 is taken by another program");
  control.used.set(main.id, { input_tokens: 182_400, output_tokens: 24_010, total_tokens: 206_410, cost_usd: 1.37, request_count: 96, unknown_count: 0, data_available: true });
  const lines = Array.from({ length: 400 }, (_, n) => `${at(400 - n)}  ${n % 37 === 0 ? "WARN" : n % 61 === 0 ? "ERROR" : "INFO"} ${["turn ended state=done model=scripted/steady", "message accepted session.key=agent:main:web:dm:1", "delivery retried channel=telegram attempt=2", "slow tool tool=shell ms=2310"][n % 4]}`);
  control.log(main.id, ...lines);
  control.tokens.push({ id: "t-2", name: "Grafana", scope: "read", created_at: at(90), revoked_at: null }, { id: "t-1", name: "Deploys from CI", scope: "operate", created_at: at(6000), revoked_at: null });
  mail({ control, main, lab });
  team(control);
  await talk({ model, daemon });
}

function mail({ control, main, lab }) {
  control.envelopes.addRule({ from: main.id, to: lab.id, type: "task.*" });
  control.envelopes.addRule({ from: lab.id, to: main.id, type: "response", auto_start: true });
  const asked = control.envelopes.send({ from: main.id, to: lab.id, type: "task.handoff", payload: { task: "Compare the three papers" }, correlation_id: "c-41", at: at(50) });
  control.envelopes.move(asked, "delivered", "delivered");
  control.envelopes.move(asked, "acknowledged", "acknowledged");
  const status = control.envelopes.send({ from: lab.id, to: main.id, type: "task.status", payload: { done: 2, of: 3 }, correlation_id: "c-41", at: at(40) });
  control.envelopes.move(status, "acknowledged", "acknowledged");
  control.envelopes.send({ from: lab.id, to: main.id, type: "response", payload: { text: "All three agree." }, correlation_id: "c-41", at: at(30) });
  const dead = control.envelopes.send({ from: main.id, to: lab.id, type: "task.handoff", payload: { task: "Translate" }, correlation_id: "c-42", at: at(20) });
  control.envelopes.move(dead, "failed", "failed", "the instance did not answer");
  control.envelopes.move(dead, "dead_letter", "dead_lettered", "5 attempts failed");
}

function team({ teams }) {
  const member = (name, status) => ({ session_key: `agent:main:teammate:${name}`, agent_id: "main", name, role: "member", color: "blue", capabilities: [], tasks: [], status, joined_at: at(90), last_active_at: at(1) });
  teams.add("release", [member("lead", "working"), member("writer", "working"), member("tester", "idle")], "Gets 0.1.0 out of the door");
  const add = (subject, depends_on, fields) => teams.addTask("release", { subject, depends_on }, fields).task_id;
  const notes = add("Collect the changes since the last release", [], { status: "completed", owner: "writer", summary: "42 changes in 9 groups" });
  const build = add("Build for Linux and macOS", [], { status: "in_progress", owner: "lead", title: "Building for macOS", lease_until: at(-8) });
  const text = add("Write the release notes in English and Chinese", [notes], { status: "claimed", owner: "writer", lease_until: at(-5), blocked_by: [] });
  const check = add("Run the checks on both builds", [build]);
  add("Publish", [text, check]);
  add("Ask the old mirror for access", [], { status: "failed", owner: "tester", summary: "Nobody answers there." });
  teams.write("release", "writer", { recipient: "lead", content: "The list of changes is done, forty-two of them." });
  teams.write("release", "lead", { content: "macOS takes a while longer, start with the notes." });
}

async function talk({ model, daemon }) {
  model.usage = { prompt_tokens: 1840, completion_tokens: 212, total_tokens: 2052 };
  await daemon.api("POST", "/agents", { agent_id: "research", name: "Research", description: "Reads papers and compares them.", identity: { emoji: "🔭" }, defaults: { system_prompt: "You read carefully." } });
  model.answer = async function* (asked) {
    if (followsTool(asked)) { yield { text: "Your folder is **empty** so far. I can:\n\n1. start a project\n2. fetch a page\n\n```sh\nmkdir notes\n```\n\n| file | size |\n|---|---|\n| notes | 0 |" }; return; }
    if (!/folder/.test(lastUserText(asked))) { yield { text: "Done: the week's plan is in your notes." }; return; }
    yield { text: "Let me look." };
    yield { call: { id: "call-1", name: "list_dir", arguments: { path: "." } } };
  };
  const { session_key: first } = await daemon.api("POST", "/sessions", { title: "What is in my folder?" });
  await daemon.api("POST", `/sessions/${encodeURIComponent(first)}/messages?wait=20`, { text: "What is in my folder?" });
  const { session_key: second } = await daemon.api("POST", "/sessions", { title: "Plan the week", agent: "research" });
  await daemon.api("POST", `/sessions/${encodeURIComponent(second)}/messages?wait=20`, { text: "Plan my week, please." });
  return { first, second };
}

/** A question that waits for a person. */
export async function question({ model, daemon }) {
  model.answer = async function* (asked) {
    if (followsTool(asked)) yield { text: "Cleaned up." };
    else yield { call: { id: "call-1", name: "shell", arguments: { command: "rm -r build" } } };
  };
  const { session_key } = await daemon.api("POST", "/sessions", { title: "Clean up the build" });
  await daemon.api("POST", `/sessions/${encodeURIComponent(session_key)}/messages`, { text: "Clean up the build folder" });
  return session_key;
}

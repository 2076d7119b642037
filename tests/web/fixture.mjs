// Test environment for the page: a real control plane, real instances, a scripted model and some history.
import { Model, followsTool, lastUserText } from "./model.mjs";
import { Plane, frontOf, until } from "./plane.mjs";

/** Returns the config of an instance that uses the scripted model. */
export const scripted = ({ url }) => ({
  providers: { scripted: { kind: "openai_compatible", base_url: url, api_key: "a-key-for-tests", models: ["steady"] } },
  models: { "scripted/steady": { input_usd_per_million: 2, output_usd_per_million: 8 } },
  agents: { defaults: { model: "scripted/steady" } },
  tools: { approvals: { shell: "always" } },
});

/** Starts a control plane with two instances: `main` runs, `research-lab` is stopped. */
export async function world() {
  const model = await new Model().start();
  const plane = await new Plane().start();
  const main = await made(plane, "main", scripted(model));
  const lab = await made(plane, "research-lab", scripted(model));
  await plane.act(main.id, "start");
  const front = await frontOf(plane);
  const link = async () => front.url + await plane.link();
  return { model, plane, main, lab, front, link, async end() { front.stop(); await plane.remove(); model.stop(); } };
}

/** Creates an instance. A header allows the config patch to write secrets. */
async function made(plane, name, config) {
  const one = await plane.make(name);
  const { etag } = await plane.api(`/instances/${one.id}/config`);
  const answer = await plane.call(`/instances/${one.id}/config`, "PATCH", config, { "if-match": etag, "x-allow-secret-write": "true" });
  if (!answer.ok) throw new Error(await answer.text());
  return one;
}

/** Creates data for every view. */
export async function furnish(set) {
  const { plane, main } = set;
  const shop = await plane.make("shop-support", null, { restart: "never" });
  const { pid } = await plane.act(shop.id, "start");
  process.kill(pid, "SIGKILL");
  for (const [name, scope] of [["Deploys from CI", "operate"], ["Grafana", "read"]]) await plane.api("/tokens", "POST", { name, scope });
  await talk(set);
  await team(set);
  await mail(set);
  const at = (minutes) => new Date(Date.now() - minutes * 60_000).toISOString();
  const texts = ["turn ended state=done model=scripted/steady", "message accepted session.key=agent:main:web:dm:1", "delivery retried channel=telegram attempt=2", "slow tool tool=shell ms=2310"];
  await plane.log(main.id, ...Array.from({ length: 400 }, (_, n) => `${at(0)}  ${n % 37 === 0 ? "WARN" : n % 61 === 0 ? "ERROR" : "INFO"} ${texts[n % 4]} n=${n}`));
  await until("the crash is detected", async () => (await plane.api(`/instances/${shop.id}`)).status === "crashed");
}

/** Sends a handoff that is answered, and a message that expires because its recipient is stopped. */
async function mail({ plane, model, main, lab }) {
  const rule = (from, to, type, more) => plane.api("/routing-rules", "POST", { from, to, type, ...more });
  await rule(main.id, lab.id, "task.*");
  await rule(main.id, lab.id, "note.short", { ttl_secs: 3, max_retries: 1 });
  for (const type of ["task.*", "response"]) await rule(lab.id, main.id, type);
  const send = (type, payload, correlation_id) => plane.api("/messages", "POST", { from: main.id, to: lab.id, type, payload, correlation_id });
  const dead = await send("note.short", { text: "Translate the summary" }, "c-42");
  await until("the message is a dead letter", async () => (await plane.api(`/messages/${dead.id}`)).state === "dead_letter");
  model.answer = async function* () { yield { text: "All three agree." }; };
  await plane.act(lab.id, "start");
  await send("task.handoff", { task: "Compare the three papers" }, "c-41");
  await until("the answer is acknowledged", async () => (await plane.api("/messages?correlation_id=c-41")).messages.some((one) => one.type === "task.result" && one.state === "acknowledged"), 30_000);
  await plane.act(lab.id, "stop");
}

/** Creates a team with tasks in several states. Its members are idle; the calls act in their name. */
async function team({ main, model }) {
  model.answer = async function* () { yield { text: "I wait." }; };
  await main.api("/teams", "POST", { name: "release", description: "Gets 0.1.0 out of the door" });
  for (const name of ["writer", "tester"]) await main.api("/teams/release/members", "POST", { name });
  const add = async (subject, depends_on = []) => (await main.api("/teams/release/tasks", "POST", { subject, depends_on })).task_id;
  const step = (task, action, body) => main.api(`/teams/release/tasks/${task}/${action}`, "POST", body);
  const notes = await add("Collect the changes since the last release");
  const build = await add("Build for Linux and macOS");
  const text = await add("Write the release notes in English and Chinese", [notes]);
  const check = await add("Run the checks on both builds", [build]);
  await add("Publish", [text, check]);
  const mirror = await add("Ask the old mirror for access");
  await step(notes, "claim", { member: "writer" });
  await step(notes, "complete", { member: "writer", summary: "42 changes in 9 groups" });
  await step(build, "claim", { member: "tester" });
  await step(build, "start", { member: "tester" });
  await step(text, "claim", { member: "writer" });
  await step(mirror, "claim", {});
  await step(mirror, "complete", { status: "failed", summary: "Nobody answers there." });
  await main.api("/teams/release/messages", "POST", { recipient: "writer", content: "macOS takes a while longer, start with the notes." });
}

async function talk({ model, main }) {
  model.usage = { prompt_tokens: 1840, completion_tokens: 212, total_tokens: 2052 };
  await main.api("/agents", "POST", { agent_id: "research", name: "Research", description: "Reads papers and compares them.", identity: { emoji: "🔭" }, defaults: { system_prompt: "You read carefully." } });
  model.answer = async function* (asked) {
    if (followsTool(asked)) { yield { text: "Your folder is **empty** so far. I can:\n\n1. start a project\n2. fetch a page\n\n```sh\nmkdir notes\n```\n\n| file | size |\n|---|---|\n| notes | 0 |" }; return; }
    if (!/folder/.test(lastUserText(asked))) { yield { text: "Done: the week's plan is in your notes." }; return; }
    yield { text: "Let me look." };
    yield { call: { id: "call-1", name: "list_dir", arguments: { path: "." } } };
  };
  for (const [title, text, agent] of [["What is in my folder?", "What is in my folder?"], ["Plan the week", "Plan my week, please.", "research"]]) {
    const { session_key } = await main.api("/sessions", "POST", { title, agent });
    await main.api(`/sessions/${encodeURIComponent(session_key)}/messages?wait=20`, "POST", { text });
  }
}

/** Starts a turn that waits for an approval. Returns its session key. */
export async function question({ model, main }, command = "rm -r build") {
  model.answer = async function* (asked) {
    if (followsTool(asked)) yield { text: "Cleaned up." };
    else yield { call: { id: "call-1", name: "shell", arguments: { command } } };
  };
  const { session_key } = await main.api("/sessions", "POST", { title: "Clean up the build" });
  await main.api(`/sessions/${encodeURIComponent(session_key)}/messages`, "POST", { text: "Clean up the build folder" });
  await until("the approval is pending", async () => (await main.api("/approvals")).approvals.some((one) => one.session_key === session_key && one.state === "pending"));
  return session_key;
}

// Large lists. The API responses are mocked, because creating so much data would take too long.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { Visit, launch, scrolled, shot } from "./browser.mjs";
import { world } from "./fixture.mjs";
import { until } from "./plane.mjs";

const SESSIONS = 10_000;
const TASKS = 5000;
let set, browser, visit, page;
before(async () => { set = await world(); browser = await launch(); });
after(async () => { await browser?.close(); await set?.end(); });
beforeEach(async () => {
  visit = await Visit.of(browser, await set.link());
  page = visit.page;
  await page.getByRole("heading", { name: "Fleet" }).waitFor();
});
afterEach(() => visit.end());
const open = (view) => page.evaluate((to) => { location.hash = to; }, `#/i/${set.main.id}/${view}`);
const at = (ms) => new Date(ms).toISOString();

const session = (n) => ({
  session_key: `agent:main:web:dm:${n}`, session_id: `s${n}`, agent_id: "main", active_agent_id: "main", owner_session_key: n % 5 ? `agent:main:web:dm:${n - (n % 5)}` : null,
  spawn_depth: 0, delegation_depth: 0, lane: "main", channel: "web", status: "active", title: `Session ${n}`, queued: 0, running_turn_id: null, tokens: n, created_at: at(1e12), updated_at: at(1.7e12 - n * 1000),
});

/** Open tasks have the lowest numbers, as in a long-lived ledger. */
const task = (n) => ({
  task_id: n + 1, subject: `Task ${n}`, description: "", title: `Task ${n}`, status: n < 1500 ? "pending" : n % 10 ? "completed" : "failed", owner: null, lease_until: null, assignee: null, capability: null,
  depends_on: n % 100 === 99 && n < 1500 ? [n] : [], blocked_by: n % 100 === 99 && n < 1500 ? [n] : [], metadata: null, note: null, summary: null, artifacts: [], created_by: "operator", created_at: at(1.7e12), ended_at: null,
});
const tasks = Array.from({ length: TASKS }, (_, n) => task(n)).reverse();
const inOrder = [...tasks.filter((one) => one.status === "pending"), ...tasks.filter((one) => one.status !== "pending")];
const team = { id: "crowd", name: "crowd", description: "", agent_type: "general-purpose", status: "active", lead_status: "idle", lead_session_key: "agent:main:main", created_at: at(1.7e12), updated_at: at(1.7e12) };

async function paged(route, list, name, most) {
  const query = new URL(route.request().url()).searchParams;
  const from = Number(query.get("cursor") ?? 0);
  const limit = from ? most : Number(query.get("limit"));
  await route.fulfill({ json: { [name]: list.slice(from, from + limit), next_cursor: from + limit < list.length ? String(from + limit) : null } });
}

describe("large lists", () => {
  it("scrolls and searches 10,000 sessions with few of them in the DOM", async () => {
    const all = Array.from({ length: SESSIONS }, (_, n) => session(n));
    await page.route("**/gateway/sessions?*", (route) => paged(route, all, "sessions", 2000));
    await open("sessions");
    const list = page.getByRole("list", { name: "Sessions" });
    await list.getByText("Session 3", { exact: true }).waitFor();
    await list.getByText("3 tokens", { exact: false }).first().waitFor();
    const rows = () => list.evaluate((node) => Math.round(node.scrollHeight / 60));
    await until("the list has all sessions", async () => { await list.evaluate((node) => { node.scrollTop = node.scrollHeight; }); return await rows() === SESSIONS; }, 60_000);
    await list.evaluate((node) => { node.scrollTop = 0; });
    const took = await scrolled(list);
    console.log(`two frames of scrolling ${SESSIONS} sessions: median ${took.toFixed(1)} ms`);
    assert.ok(took < 150, `${took} ms`);
    assert.ok(await list.getByRole("listitem").count() < 80);
    await page.reload();
    await page.getByRole("searchbox").fill("Session 9876");
    await list.getByText("Session 9876", { exact: true }).waitFor();
  });

  it("counts, draws and scrolls 5,000 tasks", async () => {
    const counts = { pending: 1485, blocked: 15, in_progress: 0, completed: 3150, failed: 350 };
    await page.route("**/gateway/teams?*", (route) => route.fulfill({ json: { teams: [team] } }));
    await page.route("**/gateway/teams/crowd", (route) => route.fulfill({ json: { ...team, members: [], counts, open: [], ended: [] } }));
    await page.route("**/gateway/teams/crowd/messages*", (route) => route.fulfill({ json: { messages: [] } }));
    await page.route("**/gateway/teams/crowd/tasks*", (route) => paged(route, inOrder, "tasks", 500));
    await open("teams/crowd");
    const column = page.getByRole("list", { name: "To do" });
    await column.getByText("Task 1499").waitFor();
    for (const [name, count] of [["To do", "1,500"], ["Done", "3,150"], ["Failed", "350"]]) await page.getByRole("region", { name, exact: true }).getByText(count, { exact: true }).waitFor();
    await page.getByText("3,150 of 5,000 done").waitFor();
    await page.getByText("Loading tasks").waitFor({ state: "hidden" });
    await shot(page, "teams-crowd");
    await page.getByRole("tab", { name: "Dependencies" }).click();
    assert.equal(await page.locator("svg path.edge").count(), 15);
    await page.getByRole("tab", { name: /Board/ }).click();
    const done = page.getByRole("list", { name: "Done", exact: true });
    await done.evaluate((node) => { node.scrollTop = node.scrollHeight; });
    await done.getByText("Task 1501", { exact: true }).waitFor();
    const took = await scrolled(column);
    console.log(`two frames of scrolling ${TASKS} tasks: median ${took.toFixed(1)} ms`);
    assert.ok(took < 150 && await column.getByRole("listitem").count() < 60, `${took} ms`);
  });

  it("shows 300 instances and rules, also after an action", async () => {
    const instance = (n) => ({ id: `i${n}`, name: `extra-${n}`, status: "stopped", port: 20_000 + n, pid: null, desired_state: "stopped", restart: "on-failure", error: null, archived_at: null, created_at: at(1.7e12) });
    const all = Array.from({ length: 300 }, (_, n) => instance(n));
    const rules = all.map((one, n) => ({ id: `r${n}`, from: one.id, to: "i0", type: `task.t${n}`, max_retries: 5, ttl_secs: 3600, auto_start: false, created_at: at(1.7e12) }));
    // At most 100 entries per page, whatever the requested limit is.
    const hundred = (list, name) => (route) => { const from = Number(new URL(route.request().url()).searchParams.get("cursor") ?? 0); return route.fulfill({ json: { [name]: list.slice(from, from + 100), next_cursor: from + 100 < list.length ? String(from + 100) : null } }); };
    await page.route("**/api/instances?*", hundred(all, "instances"));
    await page.route("**/api/instances/i299/start", (route) => route.fulfill({ json: { ...all[299], status: "running" } }));
    // The live socket would report only the real instances.
    await page.routeWebSocket("**/ws/instances", () => {});
    await page.route("**/api/routing-rules?*", hundred(rules, "rules"));
    await page.getByRole("button", { name: "Show archived" }).click();
    const last = page.locator("main li", { has: page.getByRole("link", { name: "extra-299", exact: true }) });
    await last.waitFor();
    const read = page.waitForResponse((answer) => /api\/instances\?.*cursor=200/.test(answer.url()));
    await last.getByRole("button", { name: "Start" }).click();
    await read;
    await last.waitFor();
    assert.equal(await page.locator("main ul.grid > li").count(), 300);
    await page.evaluate(() => { location.hash = "#/messages"; });
    await page.getByRole("tab", { name: "Rules" }).click();
    await page.getByText("task.t299", { exact: true }).waitFor();
  });
});

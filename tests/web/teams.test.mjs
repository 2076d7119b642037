// Teams on real instances: the board during a complete run, and actions of a person on a team.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { LOOKS, Visit, barriers, launch, shot, sticksOut } from "./browser.mjs";
import { furnish, world } from "./fixture.mjs";
import { until } from "./plane.mjs";
import { followsTool, gate, lastUserText } from "./model.mjs";

let set, browser;
before(async () => { set = await world(); await furnish(set); browser = await launch(); });
after(async () => { await browser?.close(); await set?.end(); });

const call = (id, name, given) => ({ call: { id, name, arguments: given } });

/** Returns a model for a lead that creates a team with one member and two tasks, and for the member, which works step by step. */
function crew(name, steps) {
  const results = (asked) => asked.messages.filter((message) => message.role === "tool").length;
  const lead = [
    call("l1", "TeamCreate", { team_name: name, description: "Paints the fence" }),
    call("l2", "TaskCreate", { team_name: name, subject: "Buy paint", description: "Green." }),
    call("l3", "TaskCreate", { team_name: name, subject: "Paint <b>all</b> of it", description: "Twice.", dependsOn: [1] }),
    call("l4", "TeammateSpawn", { team_name: name, name: "painter", task: `Work for ${name} until nothing is left.` }),
  ];
  const member = [
    call("m1", "TaskClaim", { team_name: name }), call("m2", "TaskUpdate", { team_name: name, task_id: 1, status: "in_progress", activeForm: "Buying green paint" }),
    call("m3", "TaskComplete", { team_name: name, task_id: 1, summary: "Two tins" }),
    call("m4", "TaskClaim", { team_name: name }), call("m5", "TaskComplete", { team_name: name, task_id: 2, summary: "It is green" }),
  ];
  return async function* (asked) {
    const text = JSON.stringify(asked.messages);
    if (text.includes(`Work for ${name}`) && !text.includes("Paint the fence, please")) {
      const done = results(asked);
      if (steps[done]) await steps[done].passed;
      yield member[done] ?? { text: "All done." };
    } else if (lastUserText(asked).includes("Paint the fence, please") || followsTool(asked)) {
      yield lead[results(asked)] ?? { text: "They are at work." };
    } else yield { text: "Noted." };
  };
}

for (const [look, options] of Object.entries(LOOKS)) {
  describe(`${look}: team`, () => {
    it("is shown live on the board from its first to its last task", async () => {
      const name = `fence-${look}`;
      const steps = Array.from({ length: 5 }, gate);
      set.model.answer = crew(name, steps);
      const visit = await Visit.of(browser, await set.link(), options);
      const { page } = visit;
      await page.getByRole("heading", { name: "Fleet" }).waitFor();
      await page.evaluate((hash) => { location.hash = hash; }, `#/i/${set.main.id}/teams/${name}`);
      await page.getByRole("heading", { name: "Teams", exact: true }).waitFor();
      const { session_key } = await set.main.api("/sessions", "POST", { title: "The fence" });
      await set.main.api(`/sessions/${encodeURIComponent(session_key)}/messages`, "POST", { text: "Paint the fence, please" });
      const column = (state) => page.getByRole("region", { name: state, exact: true });
      await page.getByRole("heading", { name, exact: true }).waitFor({ timeout: 20_000 });
      await column("To do").getByText("Paint <b>all</b> of it").waitFor();
      await column("To do").getByText("Blocked by 1").waitFor();
      const tab = await page.getByRole("tab", { name, exact: true }).boundingBox();
      assert.ok(tab.x >= 0 && tab.x + tab.width <= page.viewportSize().width, "the tab of the team is in view");
      steps[0].open();
      await column("Claimed").getByText("Buy paint").waitFor();
      steps[1].open();
      await column("In progress").getByText("Buying green paint").waitFor();
      await shot(page, `team-run-${look}`);
      for (const step of steps.slice(2)) step.open();
      await column("Done").getByText("Paint <b>all</b> of it").waitFor({ timeout: 20_000 });
      await page.getByText("2 of 2 done").waitFor();
      await page.getByRole("tab", { name: "Dependencies" }).click();
      assert.equal(await page.locator("svg path.edge.done").count(), 1);
      await page.locator("svg g[role=button]").first().focus();
      await page.keyboard.press("Space");
      await page.getByRole("dialog").getByText(/Two tins|It is green/).waitFor();
      await page.keyboard.press("Escape");
      await shot(page, `team-graph-${look}`);
      assert.ok(await sticksOut(page) <= 0);
      assert.deepEqual(await barriers(page), []);
      await visit.end();
    });
  });
}

describe("person and team", () => {
  it("creates an empty team, adds a member and sees why its turns fail", async () => {
    set.model.answer = async function* () { yield { text: "I begin." }; };
    const visit = await Visit.of(browser, await set.link(), LOOKS["phone-light"]);
    visit.expected = /400/;
    const { page } = visit;
    const dialog = page.getByRole("dialog");
    await page.getByRole("heading", { name: "Fleet" }).waitFor();
    await page.evaluate((hash) => { location.hash = hash; }, `#/i/${set.main.id}/teams`);
    await page.getByRole("button", { name: "New team" }).click();
    await dialog.getByLabel("Name").fill("garden");
    await dialog.getByRole("button", { name: "Create" }).click();
    await page.getByText("This team has no members yet.", { exact: false }).waitFor();
    await page.getByRole("button", { name: "Add member" }).click();
    await dialog.getByLabel("Name").fill("digger");
    await dialog.getByLabel("Agent").selectOption({ label: "Research" });
    await dialog.getByLabel("First message").fill("Dig.");
    await dialog.getByRole("button", { name: "Add member" }).click();
    // The lead may not start that agent, and the dialog shows the error.
    await dialog.getByText("This agent is not allowed to start that sub-agent.").waitFor();
    await dialog.getByLabel("Agent").selectOption({ label: "Default" });
    await dialog.getByRole("button", { name: "Add member" }).click();
    await page.getByRole("button", { name: /^digger/ }).waitFor();
    assert.equal((await set.main.api("/teams/garden")).members[0].agent_id, "main");
    await shot(page, "team-member");
    // A simulated failure streak, because a real one takes minutes.
    await page.route("**/teams/garden", async (route) => {
      const whole = await (await route.fetch()).json();
      whole.members[0].failure_streak = { code: "provider_failed", failures: 3, since: new Date().toISOString(), retry_at: new Date(Date.now() + 300_000).toISOString() };
      await route.fulfill({ json: whole });
    });
    await page.reload();
    await page.getByText("digger: 3 turns failed in a row. No model could answer. Next attempt in", { exact: false }).waitFor();
    assert.ok(await sticksOut(page) <= 0);
    assert.deepEqual(await barriers(page), []);
    await shot(page, "team-failure-streak");
    // The page is closed first, because it would request the deleted team again. Requests during the close are ignored.
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await visit.end();
    await set.main.api("/teams/garden/shutdown", "POST", { force: true });
  });

  it("adds a member in plan mode, returns its plan and then approves a new one", async () => {
    const plan = (n) => call(`p${n}`, "SendMessage", { team_name: "orchard", type: "plan_approval_request", content: `**Plan ${n}**: prune the old trees first.` });
    set.model.answer = async function* (asked) {
      const text = JSON.stringify(asked.messages);
      const sent = (n) => text.includes(`**Plan ${n}**`);
      if (!text.includes("You are the member 'pruner'")) yield { text: "Noted." };
      else if (!sent(1)) yield plan(1);
      else yield text.includes("Not the old ones") && !sent(2) ? plan(2) : { text: "Noted." };
    };
    await set.main.api("/teams", "POST", { name: "orchard" });
    const visit = await Visit.of(browser, await set.link(), LOOKS["phone-light"]);
    const { page } = visit;
    const dialog = page.getByRole("dialog");
    await page.getByRole("heading", { name: "Fleet" }).waitFor();
    await page.evaluate((hash) => { location.hash = hash; }, `#/i/${set.main.id}/teams/orchard`);
    await page.getByRole("button", { name: "Add member" }).click();
    await dialog.getByLabel("Name").fill("pruner");
    await dialog.getByLabel("First message").fill("Prune.");
    await dialog.getByLabel("Read-only until its plan is approved").check();
    await dialog.getByRole("button", { name: "Add member" }).click();
    await page.getByRole("button", { name: "Read plan" }).click();
    await dialog.getByText("Plan 1").waitFor();
    assert.ok(await dialog.getByRole("button", { name: "Send back" }).isDisabled(), "returning a plan requires a message");
    await dialog.getByLabel("Message to the member").fill("Not the old ones.");
    await shot(page, "team-plan");
    assert.deepEqual(await barriers(page), []);
    await dialog.getByRole("button", { name: "Send back" }).click();
    await dialog.waitFor({ state: "hidden" });
    await page.getByRole("button", { name: "Read plan" }).click();
    await dialog.getByText("Plan 2").waitFor();
    await dialog.getByRole("button", { name: "Approve" }).click();
    await until("no plan waits for approval", async () => (await page.getByText("waiting for approval").count()) === 0);
    assert.equal((await set.main.api("/teams/orchard/members/pruner/plan")).status, "none");
    assert.ok(await sticksOut(page) <= 0);
    await visit.end();
    await set.main.api("/teams/orchard/shutdown", "POST", { force: true });
  });

  it("sees the states of members and pending plans on a phone", async () => {
    const long = "somebody-with-a-very-long-name-that-fits-no-phone";
    set.model.answer = async function* () { yield { text: "I wait." }; };
    await set.main.api("/teams", "POST", { name: "glance" });
    const visit = await Visit.of(browser, await set.link(), LOOKS["phone-light"]);
    const { page } = visit;
    await page.getByRole("heading", { name: "Fleet" }).waitFor();
    await page.evaluate((hash) => { location.hash = hash; }, `#/i/${set.main.id}/teams/glance`);
    await page.getByText("No members", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Lead Idle" }).waitFor();
    await set.main.api("/teams/glance/members", "POST", { name: long });
    const member = page.getByRole("button", { name: `${long} Idle` });
    await member.waitFor();
    const state = await member.getByText("Idle", { exact: true }).boundingBox();
    assert.ok(state.x + state.width <= page.viewportSize().width, "the state is in view next to a long name");
    let change = (whole) => { whole.members[0].plan = "submitted"; };
    await page.route("**/teams/glance", async (route) => {
      const whole = await (await route.fetch()).json();
      change(whole);
      await route.fulfill({ json: whole });
    });
    await page.reload();
    await page.getByRole("button", { name: `${long} Plan waiting for approval` }).waitFor();
    assert.equal(await page.getByText("Plan waiting for approval", { exact: true }).count(), 2, "shown for the member and for the team");
    change = (whole) => { whole.turns = { used: 9, limit: 9, is_waiting: true }; };
    await page.reload();
    await page.getByText("Turn limit reached").waitFor();
    assert.ok(await sticksOut(page) <= 0);
    assert.deepEqual(await barriers(page), []);
    await shot(page, "team-glance");
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await visit.end();
    await set.main.api("/teams/glance/shutdown", "POST", { force: true });
  });

  it("opens an ended team by URL and sees an error for an unknown team", async () => {
    set.model.answer = async function* () { yield { text: "I wait." }; };
    await set.main.api("/teams", "POST", { name: "old" });
    await set.main.api("/teams/old/tasks", "POST", { subject: "Left undone" });
    await set.main.api("/teams/old/messages", "POST", { content: "Good bye, and thank you for all of the many things that you have done in this team." });
    await set.main.api("/teams/old/shutdown", "POST", { force: true });
    const visit = await Visit.of(browser, await set.link());
    const { page } = visit;
    await page.getByRole("heading", { name: "Fleet" }).waitFor();
    await page.evaluate((hash) => { location.hash = hash; }, `#/i/${set.main.id}/teams/old`);
    await page.getByRole("heading", { name: "old", exact: true }).waitFor();
    await page.getByText("Ended", { exact: true }).first().waitFor();
    await page.getByRole("button", { name: /Left undone/ }).waitFor();
    assert.deepEqual(await barriers(page), []);
    await shot(page, "team-ended");
    await page.evaluate((hash) => { location.hash = hash; }, `#/i/${set.main.id}/teams/nowhere`);
    await page.getByText("Team not found.").waitFor();
    assert.equal(await page.getByRole("heading", { name: "old", exact: true }).count(), 0, "no other team is shown instead");
    await page.getByText(/^Ended teams/).click();
    await page.getByRole("button", { name: "old", exact: true }).click();
    await page.getByRole("heading", { name: "old", exact: true }).waitFor();
    await visit.end();
  });

  it("adds a dependent task, sends a broadcast and shuts the team down", async () => {
    set.model.answer = async function* () { yield { text: "I wait." }; };
    const visit = await Visit.of(browser, await set.link());
    const { page } = visit;
    const dialog = page.getByRole("dialog");
    await page.getByRole("heading", { name: "Fleet" }).waitFor();
    await page.evaluate((hash) => { location.hash = hash; }, `#/i/${set.main.id}/teams/release`);
    await page.getByRole("button", { name: "Add task" }).click();
    await dialog.getByLabel("Subject").fill("Thank <i>everybody</i>");
    await dialog.getByRole("checkbox", { name: "Publish" }).check();
    await dialog.getByRole("button", { name: "Add task" }).click();
    await page.getByRole("button", { name: /Thank <i>everybody/ }).waitFor();
    await page.getByRole("tab", { name: "Dependencies" }).click();
    assert.equal(await page.locator("svg path.edge").count(), 5);
    await page.getByRole("tab", { name: /Messages/ }).click();
    await page.getByPlaceholder("Send a message to the team").fill("Well done <b>all</b>");
    await page.keyboard.press("Enter");
    await page.getByText("Well done <b>all</b>").first().waitFor();
    await page.getByText("macOS takes a while longer, start with the notes.").waitFor();
    await page.getByText("You", { exact: true }).first().waitFor();
    assert.deepEqual(await barriers(page), [], "a long list of messages scrolls by keyboard");
    await page.getByRole("button", { name: "Shut down" }).click();
    await dialog.getByRole("button", { name: "Shut down" }).click();
    await page.getByText(/shutting down/i).first().waitFor();
    await visit.end();
  });
});

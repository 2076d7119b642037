// A team in memory, for instances that have none yet: the calls of `/teams` and nothing else.
import { Refusal } from "./answers.mjs";

export class Teams {
  teams = [];
  tasks = new Map();
  mail = new Map();
  #next = 1;

  add(name, members, description = null) {
    const now = new Date().toISOString();
    this.teams.push({ id: name, name, description, status: "active", lead_session_key: "agent:main:main", members, created_at: now, updated_at: now });
    this.tasks.set(name, []);
    this.mail.set(name, []);
  }

  addTask(team, { subject, description = null, depends_on = [], assignee = null }, fields = {}) {
    if (!subject) throw new Refusal(422, "invalid_body", "a task needs a subject");
    const list = this.#tasksOf(team);
    const open = depends_on.filter((id) => list.find((one) => one.id === id)?.status !== "completed");
    const now = new Date().toISOString();
    const task = { id: `t${this.#next++}`, subject, description, active_form: null, status: "pending", owner: null, assignee, depends_on, blocked_by: open, lease_expires_at: null, summary: null, created_at: now, updated_at: now, ...fields };
    list.unshift(task);
    return task;
  }

  #tasksOf(team) {
    const found = this.tasks.get(team);
    if (!found) throw new Refusal(404, "unknown_team", `there is no team '${team}'`);
    return found;
  }

  /** Answers a call below `/teams`, or nothing if it is none. */
  answer(method, parts, body) {
    const [, team, what] = parts;
    if (!team) return { teams: this.teams };
    const tasks = this.#tasksOf(team);
    const found = this.teams.find((one) => one.name === team);
    if (!what) return found;
    if (what === "tasks") return method === "POST" ? this.addTask(team, body) : { tasks };
    if (what === "messages") return method === "POST" ? this.write(team, "operator", body) : { messages: this.mail.get(team) };
    if (what === "shutdown") { found.status = "shutting_down"; return { team, status: found.status }; }
    throw new Refusal(404, "unknown_route", "there is no such call");
  }

  write(team, from, { type = "message", recipient = null, content, summary }) {
    const mail = { id: `m${this.#next++}`, type, from, to: recipient, summary: summary ?? content.split(/\s+/).slice(0, 10).join(" "), state: "queued", created_at: new Date().toISOString() };
    this.mail.get(team).unshift(mail);
    return mail;
  }
}

// A team in memory, for instances that have none yet: the calls of `/teams` and nothing else.
import { Refusal } from "./answers.mjs";

export class Teams {
  teams = [];
  tasks = new Map();
  mail = new Map();
  members = new Map();
  #next = 1;

  add(name, members, description = "") {
    const now = new Date().toISOString();
    this.teams.push({ id: name, name, description, agent_type: "general-purpose", status: "active", lead_session_key: "agent:main:main", created_at: now, updated_at: now });
    this.members.set(name, members);
    this.tasks.set(name, []);
    this.mail.set(name, []);
  }

  addTask(team, { subject, description = "", depends_on = [], assignee = null }, fields = {}) {
    if (!subject) throw new Refusal(422, "invalid_body", "a task needs a subject");
    const list = this.#tasksOf(team);
    const open = depends_on.filter((id) => list.find((one) => one.task_id === id)?.status !== "completed");
    const now = new Date().toISOString();
    const task = { task_id: this.#next++, subject, description, title: subject, status: "pending", owner: null, lease_until: null, assignee, capability: null, depends_on, blocked_by: open, metadata: null, note: null, summary: null, artifacts: [], created_by: "operator", created_at: now, ended_at: null, ...fields };
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
    if (!what) return { ...found, members: this.members.get(team), counts: {}, open: [], ended: [] };
    if (what === "tasks") return method === "POST" ? { task_id: this.addTask(team, body).task_id } : { tasks };
    if (what === "messages") return method === "POST" ? this.write(team, "operator", body) : { messages: this.mail.get(team) };
    if (what === "shutdown") { found.status = "shutting_down"; return { team, status: found.status }; }
    throw new Refusal(404, "unknown_route", "there is no such call");
  }

  write(team, from, { recipient, content }) {
    const mail = { message_id: `m${this.#next++}`, type: recipient ? "message" : "broadcast", from, to: recipient ?? "everyone", summary: content.split(/\s+/).slice(0, 10).join(" "), state: "queued", created_at: new Date().toISOString(), read_at: null };
    this.mail.get(team).unshift(mail);
    return mail;
  }
}

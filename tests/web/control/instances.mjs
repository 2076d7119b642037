// Instances in memory: their states, and what may be done in which.
import { randomUUID } from "node:crypto";
import { Refusal } from "./answers.mjs";

const NAME = /^[a-zA-Z0-9][a-zA-Z0-9-]{0,63}$/;

export class Instances {
  all = new Map();
  #nextPort = 18801;
  #nextPid = 4200;

  /** `told(type, view)` hears of every change. */
  constructor(told) { this.told = told; }

  find(word) {
    const found = this.all.get(word) ?? [...this.all.values()].find((one) => one.name === word);
    if (!found) throw new Refusal(404, "unknown_instance", `there is no instance '${word}'`);
    return found;
  }

  list(archived) { return [...this.all.values()].filter((one) => archived || !one.archived_at); }

  create({ name, port }) {
    if (!NAME.test(name ?? "")) throw new Refusal(400, "bad_name", `'${name}' is not a name`);
    this.#free(name, port);
    const one = {
      id: randomUUID(), name, status: "stopped", port: port ?? this.#nextPort++, pid: null, wanted: "stopped", restart: "on-failure",
      error: null, archived_at: null, created_at: new Date().toISOString(),
    };
    this.all.set(one.id, one);
    this.told("instance_created", one);
    return one;
  }

  #free(name, port, but) {
    for (const one of this.list(false)) {
      if (one.id === but) continue;
      if (one.name === name) throw new Refusal(409, "name_taken", `an instance is called '${name}' already`);
      if (port && one.port === port) throw new Refusal(409, "instance_port_taken", `port ${port} belongs to another instance`);
    }
  }

  act(word, action) {
    const one = this.find(word);
    if (one.archived_at && action !== "unarchive") throw new Refusal(409, "instance_archived", `'${one.name}' is archived`);
    this[action](one);
    return one;
  }

  #set(one, fields, type = "status_changed") {
    Object.assign(one, fields);
    this.told(type, one);
  }

  start(one) {
    if (one.status === "running") throw new Refusal(409, "instance_running", `'${one.name}' runs already (pid ${one.pid})`);
    this.#set(one, { status: "running", pid: this.#nextPid++, wanted: "running", error: null });
  }

  stop(one) {
    if (one.status !== "running") throw new Refusal(409, "instance_not_running", `'${one.name}' does not run`);
    this.#set(one, { status: "stopped", pid: null, wanted: "stopped" });
  }

  restart(one) {
    if (one.status === "running") this.stop(one);
    this.start(one);
  }

  crash(one, error) { this.#set(one, { status: "crashed", pid: null, error }); }

  archive(one) {
    if (one.status === "running") this.stop(one);
    this.#set(one, { status: "archived", archived_at: new Date().toISOString() }, "instance_archived");
  }

  unarchive(one) {
    if (!one.archived_at) throw new Refusal(409, "not_in_archive", `'${one.name}' is not archived`);
    this.#free(one.name, one.port, one.id);
    this.#set(one, { status: "stopped", archived_at: null }, "instance_unarchived");
  }

  clone(word, { new_name: name, port }) {
    this.find(word);
    return this.create({ name, port });
  }

  delete(word) {
    const one = this.find(word);
    if (!one.archived_at) throw new Refusal(409, "not_archived", `'${one.name}' must be archived before deletion`);
    this.all.delete(one.id);
    this.told("instance_deleted", one);
  }
}

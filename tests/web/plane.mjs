// The real binary as a control plane, and instances that it starts.
import { spawn } from "node:child_process";
import { appendFile, mkdtemp, readFile, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { freePort } from "./daemon.mjs";
import { Front, isNewer } from "./front.mjs";

/** A control plane on a home of its own. */
export class Plane {
  async start() {
    this.home = await mkdtemp(path.join(os.tmpdir(), "polyclaw-plane-"));
    this.port = await freePort();
    this.url = `http://127.0.0.1:${this.port}`;
    process.once("exit", () => this.child?.kill("SIGKILL"));
    await this.run();
    this.token = (await readFile(path.join(this.home, "cp/token"), "utf8")).trim();
    return this;
  }

  async run() {
    const env = { PATH: process.env.PATH, HOME: this.home, POLYCLAW_HOME: this.home, POLYCLAW_NO_PULL: "1" };
    this.child = spawn(process.env.POLYCLAW_BIN, ["control", "serve", "--port", String(this.port)], { env, stdio: "ignore" });
    this.exited = new Promise((resolve) => this.child.once("exit", resolve));
    await until("the control plane answers", async () => (await fetch(`${this.url}/health`).catch(() => null))?.ok);
  }

  /** As the machine would: no goodbye to anybody. Its instances go on. */
  async kill() {
    this.child.kill("SIGKILL");
    await this.exited;
  }

  /** What is so while it is dead; whatever happens, those who come after find it alive. */
  async away(run) {
    await this.kill();
    try { await run(); } finally { await this.run(); }
  }

  async call(route, method = "GET", body, headers = {}) {
    const all = { authorization: `Bearer ${this.token}`, "content-type": "application/json", ...headers };
    return fetch(`${this.url}/api${route}`, { method, headers: all, body: body && JSON.stringify(body) });
  }

  /** What must go well; for what may not there is `call`. */
  async api(route, method, body, headers) {
    const response = await this.call(route, method, body, headers);
    if (!response.ok) throw new Error(`${method ?? "GET"} ${route}: ${response.status} ${await response.text()}`);
    return response.status === 204 ? null : response.json();
  }

  /** An instance that is not there yet, with this in its config. */
  async make(name, config, more = {}) {
    const made = await this.api("/instances", "POST", { name, port: await freePort(), ...more });
    if (config) await this.configure(made.id, config);
    return { ...made, api: (route, method, body) => this.api(`/instances/${made.id}/gateway${route}`, method, body) };
  }

  async configure(id, patch) {
    const { etag } = await this.api(`/instances/${id}/config`);
    const answer = await this.call(`/instances/${id}/config`, "PATCH", patch, { "if-match": etag, "x-allow-secret-write": "true" });
    if (!answer.ok) throw new Error(await answer.text());
  }

  act(id, action) { return this.api(`/instances/${id}/${action}`, "POST", {}); }

  /** A link that lets one browser in, once. */
  async link() { return (await this.api("/logins", "POST", {})).path; }

  logOf(id) { return path.join(this.home, "cp/instances", id, "logs/daemon.log"); }
  log(id, ...lines) { return appendFile(this.logOf(id), lines.map((line) => `${line}\n`).join("")); }

  /** Instances outlive the control plane, so they are ended one by one. */
  async remove() {
    const { instances } = await this.api("/instances?include_archived=true").catch(() => ({ instances: [] }));
    await this.kill();
    for (const { pid } of instances) if (pid) try { process.kill(pid, "SIGKILL"); } catch { /* It ended meanwhile. */ }
    await rm(this.home, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Waits until something is so. */
export async function until(what, is, patience = 20_000) {
  for (const end = Date.now() + patience; Date.now() < end; await pause(50)) if (await is()) return;
  throw new Error(`not so: ${what}`);
}

/** The page of a control plane: its own, unless it was built anew since. */
export const frontOf = async (plane) => ((await isNewer(plane.url)) ? new Front().start(plane.url) : { url: plane.url, stop() {} });

// Runs the real binary as a control plane that starts instances.
import { spawn } from "node:child_process";
import { appendFile, mkdtemp, readFile, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { freePort } from "./daemon.mjs";
import { Front, isNewer } from "./front.mjs";

/** A control plane with a temporary home. */
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

  /** Kills the process without shutdown, like a crash of the machine. Its instances keep running. */
  async kill() {
    this.child.kill("SIGKILL");
    await this.exited;
  }

  /** Runs a function while the control plane is killed, and always restarts it afterwards. */
  async away(run) {
    await this.kill();
    try { await run(); } finally { await this.run(); }
  }

  async call(route, method = "GET", body, headers = {}) {
    const all = { authorization: `Bearer ${this.token}`, "content-type": "application/json", ...headers };
    return fetch(`${this.url}/api${route}`, { method, headers: all, body: body && JSON.stringify(body) });
  }

  /** Makes a call and throws if it fails. Use `call` for calls that may fail. */
  async api(route, method, body, headers) {
    const response = await this.call(route, method, body, headers);
    if (!response.ok) throw new Error(`${method ?? "GET"} ${route}: ${response.status} ${await response.text()}`);
    return response.status === 204 ? null : response.json();
  }

  /** Creates an instance with this config. */
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

  /** Returns the path of a one-time login link. */
  async link() { return (await this.api("/logins", "POST", {})).path; }

  logOf(id) { return path.join(this.home, "cp/instances", id, "logs/daemon.log"); }
  log(id, ...lines) { return appendFile(this.logOf(id), lines.map((line) => `${line}\n`).join("")); }

  /** Instances outlive the control plane, so each is killed separately. */
  async remove() {
    const { instances } = await this.api("/instances?include_archived=true").catch(() => ({ instances: [] }));
    await this.kill();
    for (const { pid } of instances) if (pid) try { process.kill(pid, "SIGKILL"); } catch { /* It has already ended. */ }
    await rm(this.home, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Waits until a condition holds. */
export async function until(what, is, timeoutMs = 20_000) {
  for (const end = Date.now() + timeoutMs; Date.now() < end; await pause(50)) if (await is()) return;
  throw new Error(`timed out waiting until ${what}`);
}

/** Returns the server of a control plane's page: the control plane itself, or a front with a newer build. */
export const frontOf = async (plane) => ((await isNewer(plane.url)) ? new Front().start(plane.url) : { url: plane.url, stop() {} });

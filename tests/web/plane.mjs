// The real binary as a control plane.
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { freePort } from "./daemon.mjs";
import { Front } from "./front.mjs";

const binary = process.env.POLYCLAW_BIN;

/** A control plane on a home of its own. */
export class Plane {
  async start() {
    this.home = await mkdtemp(path.join(os.tmpdir(), "polyclaw-plane-"));
    this.port = await freePort();
    this.url = `http://127.0.0.1:${this.port}`;
    const env = { PATH: process.env.PATH, HOME: this.home, POLYCLAW_HOME: this.home, POLYCLAW_NO_PULL: "1" };
    this.child = spawn(binary, ["control", "serve", "--port", String(this.port)], { env, stdio: "ignore" });
    for (let tries = 0; tries < 200 && !(await fetch(`${this.url}/health`).catch(() => null))?.ok; tries += 1) await pause(50);
    this.token = (await readFile(path.join(this.home, "cp/token"), "utf8")).trim();
    return this;
  }

  async api(route, method = "GET", body) {
    const headers = { authorization: `Bearer ${this.token}`, "content-type": "application/json" };
    return (await fetch(`${this.url}/api${route}`, { method, headers, body: body && JSON.stringify(body) })).json();
  }

  /** Instances outlive the control plane, so they are ended one by one. */
  async remove() {
    const { instances } = await this.api("/instances");
    for (const { pid } of instances) if (pid) process.kill(pid, "SIGKILL");
    this.child.kill("SIGKILL");
    await rm(this.home, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** The page as it is built now, before a control plane: what the binary has in it may be older. */
export const frontOf = (plane) => new Front().start(plane.url, ({ pathname, search }) => /^\/(app\/|assets\/|icon|$)/.test(pathname) && !search.includes("code="));

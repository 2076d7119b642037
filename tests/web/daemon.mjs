// Runs the real binary in a temporary home.
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";

export const TOKEN = "a-token-for-tests-only-0123456789";

export class Daemon {
  static async start(modelUrl, model = "scripted/steady", rest = "") {
    const daemon = new Daemon();
    daemon.binary = process.env.POLYCLAW_BIN;
    if (!daemon.binary) throw new Error("POLYCLAW_BIN must name the polyclaw binary");
    daemon.home = await mkdtemp(path.join(os.tmpdir(), "polyclaw-web-"));
    daemon.port = await freePort();
    daemon.url = `http://127.0.0.1:${daemon.port}`;
    process.once("exit", () => daemon.child?.kill("SIGKILL"));
    await writeFile(path.join(daemon.home, "config.toml"), `
schema = 1
[gateway]
port = ${daemon.port}
[providers.scripted]
kind = "openai_compatible"
base_url = "${modelUrl}"
models = ["steady"]
[tools]
approvals = { shell = "always" }
[agents.defaults]
model = "${model}"
${rest}`, { mode: 0o600 });
    await daemon.run();
    return daemon;
  }

  async run() {
    this.output = "";
    const env = { PATH: process.env.PATH, HOME: this.home, POLYCLAW_HOME: this.home, POLYCLAW_TOKEN: TOKEN, POLYCLAW_NO_PULL: '1' };
    this.child = spawn(this.binary, ["daemon"], { env, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.child.stdout, this.child.stderr]) stream.on("data", (piece) => { this.output += piece; });
    this.exited = new Promise((resolve) => this.child.once("exit", resolve));
    for (let tries = 0; tries < 200; tries += 1) {
      if (this.child.exitCode !== null) break;
      const response = await fetch(`${this.url}/health`).catch(() => null);
      if (response?.ok) return;
      await pause(50);
    }
    throw new Error(`the daemon did not start:\n${this.output}`);
  }

  /** Kills the process without drain, like a crash of the machine. */
  async kill() {
    this.child.kill("SIGKILL");
    await this.exited;
  }

  async api(method, route, body) {
    const response = await fetch(`${this.url}/api/v1${route}`, {
      method, headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" }, body: body && JSON.stringify(body),
    });
    return response.json();
  }

  async remove() {
    await this.kill();
    await rm(this.home, { recursive: true, force: true });
  }
}

/** Returns a free port below the ephemeral range, so that no outgoing connection takes it while a server restarts. */
export async function freePort() {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    const server = net.createServer();
    const isFree = await new Promise((resolve) => { server.once("error", () => resolve(false)); server.listen(port, "127.0.0.1", () => resolve(true)); });
    if (isFree) await new Promise((resolve) => server.close(resolve));
    if (isFree) return port;
  }
}

// A control plane on the wire, in memory, for tests of the page: the calls and sockets the page uses, as they are specified.
// Calls through the gateway go to a real instance.
import { createHash, randomUUID } from "node:crypto";
import http from "node:http";
import { WebSocketServer } from "ws";
import { appFile } from "../front.mjs";
import { forward, forwardSocket } from "../forward.mjs";
import { Refusal, bodyOf, json, page, refuse } from "./answers.mjs";
import { ConfigFile } from "./config.mjs";
import { Instances } from "./instances.mjs";
import { Envelopes } from "./envelopes.mjs";
import { Teams } from "./teams.mjs";

export const CONTROL_TOKEN = "a-control-token-for-tests-0123456789";
const COOKIE = "polyclaw_cp=in";

export class Control {
  instances = new Instances((type, one) => this.#tell(type, one));
  envelopes = new Envelopes((event) => this.#send("messages", event));
  teams = new Teams();
  configs = new Map();
  logs = new Map();
  tokens = [];
  trail = [];
  used = new Map();
  #sockets = new Set();
  #codes = new Set();

  /** `daemons`: which real instance is behind an id, as `{ url, token }`. */
  async start(port = 0) {
    this.daemons ??= new Map();
    this.server = http.createServer((request, response) => this.#serve(request, response).catch((error) => refuse(response, error)));
    this.wss = new WebSocketServer({ noServer: true });
    this.server.on("upgrade", (request, socket, head) => this.#upgrade(request, socket, head));
    await new Promise((resolve) => this.server.listen(port, "127.0.0.1", resolve));
    this.port = this.server.address().port;
    this.url = `http://127.0.0.1:${this.port}`;
    return this;
  }

  /** As a crash would: nothing is said to anybody. What is stored stays. */
  async stop() {
    for (const { socket } of this.#sockets) socket.terminate();
    this.#sockets.clear();
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  again() { return this.start(this.port); }

  link() {
    const code = randomUUID();
    this.#codes.add(code);
    return `${this.url}/?code=${code}`;
  }

  log(id, ...lines) {
    this.logs.set(id, [...(this.logs.get(id) ?? []), ...lines]);
    this.#send("logs", { type: "lines", lines }, (one) => one.id === id);
  }

  #record(action, target, fields = {}) {
    const before = this.trail[0]?.hash ?? "";
    const entry = { seq: this.trail.length + 1, who: "operator", action, target, before: null, after: null, detail: "", at: new Date().toISOString(), ...fields };
    this.trail.unshift({ ...entry, hash: createHash("sha256").update(before + JSON.stringify(entry)).digest("hex") });
  }

  #tell(type, instance) {
    this.#send("instances", { type, instance });
  }

  #send(topic, frame, fits = () => true) {
    for (const one of this.#sockets) if (one.topic === topic && fits(one)) one.socket.send(JSON.stringify(frame));
  }

  isIn(request) {
    return request.headers.authorization === `Bearer ${CONTROL_TOKEN}` || (request.headers.cookie ?? "").includes(COOKIE);
  }

  async #serve(request, response) {
    const url = new URL(request.url, this.url);
    if (!url.pathname.startsWith("/api/")) return this.#file(url, response);
    if (!this.isIn(request)) throw new Refusal(401, "unauthorized", "no token, or a wrong one");
    const parts = url.pathname.slice(5).split("/").filter(Boolean).map(decodeURIComponent);
    if (parts[0] === "instances" && parts[2] === "gateway") return this.#gateway(request, response, url, parts);
    const body = ["POST", "PUT", "PATCH"].includes(request.method) ? await bodyOf(request) : {};
    return this.#answer(request, response, url, parts, body);
  }

  async #file(url, response) {
    const code = url.searchParams.get("code");
    if (code && this.#codes.delete(code)) {
      response.writeHead(303, { location: "/", "set-cookie": `${COOKIE}; Path=/; HttpOnly; SameSite=Strict` });
      return response.end();
    }
    return appFile(url.pathname, response);
  }

  async #answer(request, response, url, parts, body) {
    const route = `${request.method} ${parts[0]}`;
    const query = url.searchParams;
    if (route === "GET version") return json(response, 200, { version: "0.1.0" });
    if (route === "POST logins") return json(response, 201, { code: this.link().split("=")[1], path: "/" });
    if (route === "GET tokens") return json(response, 200, { tokens: this.tokens });
    if (route === "GET audit") return json(response, 200, page("entries", this.trail, query));
    if (parts[0] === "instances") return this.#instance(request, response, query, parts, body);
    if (parts[0] === "routing-rules") return this.#rules(request, response, parts, body);
    if (parts[0] === "messages") return this.#messages(request, response, query, parts);
    throw new Refusal(404, "unknown_route", url.pathname);
  }

  #instance(request, response, query, [, word, what, more], body) {
    const { method } = request;
    if (!word) {
      if (method === "GET") return json(response, 200, { instances: this.instances.list(query.get("include_archived") === "true"), next_cursor: null });
      return json(response, 201, this.#made("instance.create", this.instances.create(body)));
    }
    if (method === "DELETE") {
      const { id, name } = this.instances.find(word);
      this.instances.delete(word);
      this.#record("instance.delete", id, { detail: name });
      return json(response, 204);
    }
    const one = this.instances.find(word);
    if (method === "POST" && what === "clone") return json(response, 201, this.#made("instance.clone", this.instances.clone(word, body)));
    if (method === "POST" && ["start", "stop", "restart", "archive", "unarchive"].includes(what)) {
      this.instances.act(word, what);
      this.#record(`instance.${what}`, one.id);
      return json(response, 200, one);
    }
    if (what === "usage") return json(response, 200, this.used.get(one.id) ?? { input_tokens: null, output_tokens: null, total_tokens: null, cost_usd: null, request_count: 0, unknown_count: 0, data_available: false });
    if (what === "details") return json(response, 200, { instance: one, health: null, config: {}, persona: [] });
    if (what === "logs") return this.#log(response, query, one, more);
    if (what === "config") return this.#config(request, response, one, more, body);
    if (what === "messages") { query.set("instance", one.id); return json(response, 200, page("messages", this.envelopes.list(query), query)); }
    if (!what) return json(response, 200, one);
    throw new Refusal(404, "unknown_route", "there is no such call");
  }

  #made(action, one) {
    this.configs.set(one.id, new ConfigFile(`schema = 1\n\n[gateway]\nport = ${one.port}\n`));
    this.#record(action, one.id, { detail: one.name });
    return one;
  }

  #log(response, query, one, more) {
    const lines = this.logs.get(one.id) ?? [];
    if (more === "download") {
      response.writeHead(200, { "content-type": "text/plain; charset=utf-8", "content-disposition": `attachment; filename="${one.name}.log"` });
      return response.end(lines.join("\n"));
    }
    const wanted = Number(query.get("lines") ?? 100);
    if (query.get("mode") !== "page") return json(response, 200, { lines: lines.slice(-wanted) });
    const from = Number(query.get("cursor") ?? 0);
    const next = Math.min(from + wanted, lines.length);
    return json(response, 200, { lines: lines.slice(from, next), next_cursor: String(next), has_more: next < lines.length });
  }

  #config(request, response, one, more, body) {
    const file = this.configs.get(one.id) ?? new ConfigFile("schema = 1\n");
    this.configs.set(one.id, file);
    if (more === "validate") return json(response, 200, file.validate(body.toml));
    if (request.method === "GET") return json(response, 200, file.read(), { etag: file.etag });
    const before = file.etag;
    const written = file.write(body.toml, request.headers["if-match"], request.headers["x-allow-secret-write"] === "true");
    this.#record("config.write", one.id, { before, after: file.etag });
    return json(response, 200, written, { etag: file.etag });
  }

  #rules(request, response, [, id], body) {
    if (request.method === "GET") return json(response, 200, { rules: this.envelopes.rules, next_cursor: null });
    if (request.method === "DELETE") { this.envelopes.removeRule(id); this.#record("rule.delete", id); return json(response, 204); }
    const rule = this.envelopes.addRule(body);
    this.#record("rule.create", rule.id);
    return json(response, 201, rule);
  }

  #messages(request, response, query, [, id, what]) {
    if (!id) return json(response, 200, page("messages", this.envelopes.list(query), query));
    if (id === "dead_letter") { query.set("state", "dead_letter"); return json(response, 200, page("messages", this.envelopes.list(query), query)); }
    if (what === "replay") { this.#record("message.replay", id); return json(response, 200, this.envelopes.replay(id)); }
    return json(response, 200, this.envelopes.find(id));
  }

  async #gateway(request, response, url, parts) {
    const one = this.instances.find(parts[1]);
    if (one.status !== "running") throw new Refusal(502, "instance_unreachable", `'${one.name}' can not be reached: it does not run`);
    if (parts[3] === "teams") return json(response, 200, this.teams.answer(request.method, parts.slice(3), request.method === "POST" ? await bodyOf(request) : {}));
    const daemon = this.daemons.get(one.id);
    if (!daemon) throw new Refusal(502, "instance_unreachable", `'${one.name}' can not be reached`);
    const path = `/api/v1${url.pathname.slice(url.pathname.indexOf("/gateway") + 8)}${url.search}`;
    return forward(request, response, daemon.url, path, { authorization: `Bearer ${daemon.token}`, cookie: "" });
  }

  #upgrade(request, socket, head) {
    const url = new URL(request.url, this.url);
    const gateway = /^\/api\/instances\/([^/]+)\/gateway\/ws$/.exec(url.pathname);
    if (!this.isIn(request)) return socket.end("HTTP/1.1 401 Unauthorized\r\n\r\n");
    if (gateway) {
      const daemon = this.daemons.get(this.instances.find(decodeURIComponent(gateway[1])).id);
      if (!daemon) return socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
      return forwardSocket(request, socket, head, daemon.url, "/api/v1/ws", { authorization: `Bearer ${daemon.token}`, cookie: "" });
    }
    return this.wss.handleUpgrade(request, socket, head, (open) => this.#opened(open, url));
  }

  #opened(socket, url) {
    const [, topic, id, what] = url.pathname.slice(1).split("/");
    const one = { socket, topic: what ?? topic, id: id && this.instances.find(decodeURIComponent(id)).id, archived: false };
    this.#sockets.add(one);
    socket.on("close", () => this.#sockets.delete(one));
    socket.on("message", (text) => {
      const frame = JSON.parse(String(text));
      if (frame.type === "ping") socket.send(JSON.stringify({ type: "pong" }));
      if (frame.type === "set_include_archived") { one.archived = frame.value; this.#snapshot(one); }
    });
    if (one.topic === "instances") this.#snapshot(one);
    if (one.topic === "logs") socket.send(JSON.stringify({ type: "backlog", lines: (this.logs.get(one.id) ?? []).slice(-Number(url.searchParams.get("backlog") ?? 100)) }));
  }

  #snapshot(one) { one.socket.send(JSON.stringify({ type: "snapshot", instances: this.instances.list(one.archived) })); }
}

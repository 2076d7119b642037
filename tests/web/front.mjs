// Serves the built page in front of a daemon that was built without it, with the headers the daemon itself would send.
import { readFile } from "node:fs/promises";
import http from "node:http";
import path from "node:path";
import { forward, forwardSocket } from "./forward.mjs";

const DIST = path.join(import.meta.dirname, "../../web/dist");
const KINDS = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml" };
export const POLICY = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/** A file of the page, or its index. */
export async function appFile(pathname, response) {
  const name = pathname.replace(/^\/(app\/)?/, "") || "index.html";
  const found = await readFile(path.join(DIST, path.normalize(name))).catch(() => null);
  response.writeHead(found ? 200 : 404, { "content-type": KINDS[path.extname(name)] ?? "text/plain", "content-security-policy": POLICY, "referrer-policy": "no-referrer", "cache-control": "no-store" });
  response.end(found ?? "not found");
}

export class Front {
  /** `isPage` says which addresses are the page's: an instance has it in `/app/`. */
  async start(target, isPage = ({ pathname }) => pathname.startsWith("/app/")) {
    this.server = http.createServer((request, response) => {
      const url = new URL(request.url, "http://x");
      if (isPage(url)) void appFile(url.pathname, response);
      else forward(request, response, target, request.url);
    });
    this.server.on("upgrade", (request, socket, head) => forwardSocket(request, socket, head, target, request.url));
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  stop() { this.server.closeAllConnections(); this.server.close(); }
}

/** Where the page of a daemon is: its own, if it was built in. */
export async function frontOf(daemon) {
  const answer = await fetch(`${daemon.url}/app/`);
  const isBuiltIn = answer.ok && (await answer.text()).includes("type=\"module\"");
  return isBuiltIn ? { url: daemon.url, stop() {} } : new Front().start(daemon.url);
}

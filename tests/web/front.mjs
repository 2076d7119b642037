// Serves the newest build of the page in front of a server whose embedded page is older or missing, with the same headers.
import { readFile } from "node:fs/promises";
import http from "node:http";
import path from "node:path";
import { forward, forwardSocket } from "./forward.mjs";

const DIST = path.join(import.meta.dirname, "../../web/dist");
const KINDS = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml" };
const POLICY = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const FOLDER = "/app/";
/** Returns whether a URL belongs to the page. All its files are in this folder. */
const isOfApp = ({ pathname }) => pathname.startsWith(FOLDER);

/** Serves a file of the page, or its index. */
async function appFile(pathname, response) {
  const name = pathname.slice(FOLDER.length) || "index.html";
  const found = await readFile(path.join(DIST, path.normalize(name))).catch(() => null);
  response.writeHead(found ? 200 : 404, { "content-type": KINDS[path.extname(name)] ?? "text/plain", "content-security-policy": POLICY, "referrer-policy": "no-referrer", "cache-control": "no-store" });
  response.end(found ?? "not found");
}

export class Front {
  async start(target) {
    this.server = http.createServer((request, response) => {
      const url = new URL(request.url, "http://x");
      if (isOfApp(url)) void appFile(url.pathname, response);
      else forward(request, response, target, request.url);
    });
    this.server.on("upgrade", (request, socket, head) => forwardSocket(request, socket, head, target, request.url));
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  stop() { this.server.closeAllConnections(); this.server.close(); }
}

/** Returns whether the newest build differs from the page in the binary. */
export async function isNewer(url) {
  const [built, own] = await Promise.all([readFile(path.join(DIST, "index.html"), "utf8").catch(() => null), fetch(`${url}/app/`).then((answer) => answer.text())]);
  return built !== null && built !== own;
}

/** Returns the server of a daemon's page: the daemon itself, or a front with a newer build. */
export const frontOf = async (daemon) => ((await isNewer(daemon.url)) ? new Front().start(daemon.url) : { url: daemon.url, stop() {} });

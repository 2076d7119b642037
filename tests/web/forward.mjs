// Forwards requests and WebSockets to another server, like a reverse proxy.
import http from "node:http";

export function forward(request, response, target, path, headers = {}) {
  const to = http.request(target + path, { method: request.method, headers: { ...request.headers, ...headers } }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  to.on("error", () => { if (response.headersSent) response.destroy(); else { response.writeHead(502); response.end(); } });
  response.on("close", () => to.destroy());
  request.pipe(to);
}

export function forwardSocket(request, socket, head, target, path, headers = {}) {
  const to = http.request(target + path, { headers: { ...request.headers, ...headers } });
  to.on("upgrade", (answer, other, first) => {
    const lines = Object.entries(answer.headers).map(([name, value]) => `${name}: ${value}`);
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join("\r\n")}\r\n\r\n`);
    other.write(head);
    socket.write(first);
    other.pipe(socket).pipe(other);
    for (const [one, peer] of [[socket, other], [other, socket]]) { one.on("error", () => peer.destroy()); one.on("close", () => peer.destroy()); }
  });
  to.on("response", (answer) => socket.end(`HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}\r\n\r\n`));
  to.on("error", () => socket.destroy());
  to.end();
}

// A third-party MCP client (the protocol's official SDK) that calls one server and prints the results:
// node client.mjs <program> <arguments as JSON> <calls as JSON: [[tool, arguments], …]>   over stdio
// node client.mjs <url> <token> <calls as JSON>                                            over streamable HTTP
// For the entry `["sign", {}]` it prints `waiting` on stderr and waits for a line on stdin.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { once } from "node:events";

const [place, second, calls] = process.argv.slice(2);
const overHttp = () =>
  new StreamableHTTPClientTransport(new URL(place), { requestInit: { headers: { Authorization: `Bearer ${second}` } } });
const overStdio = () =>
  new StdioClientTransport({ command: place, args: JSON.parse(second), env: process.env, stderr: "inherit" });
const client = new Client({ name: "outside", version: "1" });
await client.connect(place.startsWith("http") ? overHttp() : overStdio());
const { tools } = await client.listTools();
const results = [];
for (const [name, given] of JSON.parse(calls)) {
  if (name === "sign") {
    console.error("waiting");
    await once(process.stdin, "data");
    continue;
  }
  const { content, isError } = await client.callTool({ name, arguments: given });
  results.push({ text: content.map((one) => one.text).join("\n"), isError: isError ?? false });
}
console.log(JSON.stringify({ server: client.getServerVersion(), tools: tools.map((one) => one.name), results }));
await client.close();
process.exit(0);

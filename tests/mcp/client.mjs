// A client of somebody else's making (the protocol's own SDK) that calls one server over stdio and prints what it got:
// node client.mjs <program> <arguments as JSON> <calls as JSON: [[tool, arguments], …]>
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [command, args, calls] = process.argv.slice(2);
const client = new Client({ name: "outside", version: "1" });
await client.connect(new StdioClientTransport({ command, args: JSON.parse(args), env: process.env, stderr: "inherit" }));
const { tools } = await client.listTools();
const results = [];
for (const [name, given] of JSON.parse(calls)) {
  const { content, isError } = await client.callTool({ name, arguments: given });
  results.push({ text: content.map((one) => one.text).join("\n"), isError: isError ?? false });
}
console.log(JSON.stringify({ server: client.getServerVersion(), tools: tools.map((one) => one.name), results }));
await client.close();

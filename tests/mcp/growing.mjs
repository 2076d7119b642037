// An MCP server (the protocol's official SDK) whose tools change at run time and whose texts are hostile. It writes to a file when a
// call is cancelled: node growing.mjs <file>
import { writeFileSync } from "node:fs";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";

const note = process.argv[2];
const say = (text) => ({ content: [{ type: "text", text }] });
const server = new McpServer({ name: "growing\u202e", version: "1" });
server.registerTool("grow", { description: `\u202eevil\u001b[2J ${"x".repeat(100_000)}` }, async () => {
  server.registerTool("fresh", { description: "new" }, async () => say("fresh \u0000\u202etext"));
  return say("grown");
});
server.registerTool(`odd name/ü${"n".repeat(10_000)}`, { description: "odd" }, async () => say("odd"));
server.registerTool("wait", { description: "waits" }, ({ signal }) => new Promise((end) => {
  writeFileSync(note, "waiting");
  signal.addEventListener("abort", () => { writeFileSync(note, "stopped"); end(say("stopped")); });
}));
console.error("my key is", process.env.LAB_KEY);
await server.connect(new StdioServerTransport());

// A third-party Telegram Bot API on a free port: prints its address and serves until its standard input ends.
import net from "node:net";
import { createRequire } from "node:module";

const TelegramServer = createRequire(import.meta.url)("telegram-test-api");
const port = await new Promise((resolve) => {
  const probe = net.createServer().listen(0, "127.0.0.1", () => {
    const { port } = probe.address();
    probe.close(() => resolve(port));
  });
});
const server = new TelegramServer({ port, host: "127.0.0.1", protocol: "http", storage: "RAM", storeTimeout: 60 });
await server.start();
console.log(`http://127.0.0.1:${port}`);
process.stdin.resume().on("end", () => process.exit(0));

// `polyclaw up` prints a link to the command center, which the binary serves itself.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { after, before, describe, it } from "node:test";
import { LOOKS, Visit, launch, shot } from "./browser.mjs";
import { freePort } from "./daemon.mjs";
import { Model, says } from "./model.mjs";
import { until } from "./plane.mjs";

let browser, model;
before(async () => { browser = await launch(); model = await new Model().start(); });
after(async () => { await browser?.close(); model?.stop(); });

/** Starts `polyclaw up` and waits for its link. `end` stops it. */
async function up(home) {
  const env = { PATH: process.env.PATH, HOME: home, POLYCLAW_HOME: home, POLYCLAW_NO_PULL: "1", POLYCLAW_CP_PORT: String(await freePort()) };
  await writeFile(path.join(home, "config.toml"), `schema = 1\n[providers.scripted]\nkind = "openai_compatible"\nbase_url = "${model.url}"\nmodels = ["steady"]\n[agents.defaults]\nmodel = "scripted/steady"\n`, { mode: 0o600 });
  const child = spawn(process.env.POLYCLAW_BIN, ["up", "--port", String(await freePort())], { env, stdio: ["ignore", "pipe", "pipe"] });
  process.once("exit", () => child.kill("SIGKILL"));
  const one = { text: "", end: () => new Promise((resolve) => { child.once("exit", resolve); child.kill("SIGTERM"); }) };
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => { one.text += piece; });
  const link = /fleet\s+(http\S+code=[\w-]+)/;
  await until("a link is printed", () => link.test(one.text), 60_000);
  [, one.link] = link.exec(one.text);
  return one;
}

for (const look of ["desktop-light", "phone-dark"]) {
  describe(`${look}: polyclaw up`, () => {
    it("prints a one-time link to the page that the binary serves", async () => {
      const home = await mkdtemp(path.join(os.tmpdir(), "polyclaw-up-"));
      const running = await up(home);
      try {
        const visit = await Visit.of(browser, running.link, LOOKS[look]);
        const { page } = visit;
        await page.getByRole("heading", { name: "Fleet" }).waitFor({ timeout: 20_000 });
        const card = page.locator("main li", { has: page.getByRole("link", { name: "main", exact: true }) });
        await card.getByText("Running", { exact: true }).waitFor({ timeout: 20_000 });
        assert.equal(new URL(page.url()).origin, new URL(running.link).origin, "no proxy is in between");
        assert.equal(new URL(page.url()).search, "");
        const policy = (await fetch(new URL("/app/", running.link))).headers.get("content-security-policy");
        assert.match(policy, /default-src 'self'(?!.*unsafe)/);
        model.answer = says("Good morning.");
        await card.getByRole("link", { name: "main", exact: true }).click();
        await page.getByRole("main").getByRole("link", { name: /Start a chat/ }).first().click();
        await page.getByRole("textbox", { name: "Message" }).fill("Hello");
        await page.keyboard.press("Enter");
        await page.getByRole("log").getByText("Good morning.").waitFor({ timeout: 30_000 });
        await shot(page, `up-${look}`);
        const second = await Visit.of(browser, running.link, LOOKS[look]);
        second.expected = /401/;
        await second.page.getByText("This link was already used or has expired.").waitFor();
        await shot(second.page, `link-used-${look}`);
        await second.end();
        await visit.end();
      } finally {
        await running.end();
        await rm(home, { recursive: true, force: true, maxRetries: 5 });
      }
    });
  });
}

// Bundles and imports one module of the page, to test its pure functions without a browser.
import { mkdtemp } from "node:fs/promises";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

const web = path.join(import.meta.dirname, "../../web");

// Without the Svelte compiler a reactive value is a plain value.
globalThis.$state = Object.assign((value) => value, { raw: (value) => value, snapshot: (value) => value });

export async function source(file) {
  const { rolldown } = await import(pathToFileURL(createRequire(path.join(web, "node_modules/vite/package.json")).resolve("rolldown")));
  const bundle = await rolldown({ input: path.join(web, "src", file) });
  const to = path.join(await mkdtemp(path.join(os.tmpdir(), "polyclaw-source-")), "module.mjs");
  await bundle.write({ file: to, format: "esm", codeSplitting: false });
  return import(pathToFileURL(to));
}

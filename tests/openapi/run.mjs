// Tests the OpenAPI documents of an instance and of a control plane with third-party tools: both documents pass Redocly and Spectral,
// and the generated TypeScript and Python clients work with the running binary.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Daemon, TOKEN } from "../web/daemon.mjs";
import { Plane } from "../web/plane.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const bin = (name) => path.join(here, "node_modules/.bin", name);
const python = path.join(here, "../../.tools/python/bin/python");
const work = await mkdtemp(path.join(os.tmpdir(), "polyclaw-openapi-"));

/** Runs a program to completion. An error contains its output. */
async function run(program, args, options = {}) {
  try {
    const { stdout } = await promisify(execFile)(program, args, { cwd: work, maxBuffer: 64 << 20, ...options });
    return stdout;
  } catch (error) {
    throw new Error(`${path.basename(program)} ${args.join(" ")} failed:\n${error.stdout ?? ""}${error.stderr ?? ""}`);
  }
}

/** Checks that each operation has a unique id, a summary and a description, and that each tag is described. */
function checkTexts(name, document) {
  const operations = Object.values(document.paths).flatMap((item) => Object.values(item));
  const ids = operations.map((operation) => operation.operationId);
  assert.equal(new Set(ids).size, ids.length, `${name}: operation ids are unique`);
  const bare = operations.filter(({ summary, description }) => !summary || !description).map(({ operationId }) => operationId);
  assert.deepEqual(bare, [], `${name}: every operation has a summary and a description`);
  const tags = new Set(document.tags.map((tag) => tag.name));
  assert.deepEqual(operations.flatMap((operation) => operation.tags).filter((tag) => !tags.has(tag)), [], `${name}: tags are described`);
}

async function lint(name, file) {
  await run(bin("redocly"), ["lint", file, "--config", path.join(here, "redocly.yaml"), "--format", "stylish", "--max-problems", "40"]);
  await run(bin("spectral"), ["lint", file, "--ruleset", path.join(here, "spectral.yaml"), "--fail-severity", "error", "--quiet"]);
  console.log(`  ${name}: passes redocly and spectral`);
}

/** Generates the types, compiles a client that uses them, and runs it. */
async function typescript(files, env) {
  const folder = path.join(work, "typescript");
  await mkdir(folder);
  await symlink(path.join(here, "node_modules"), path.join(folder, "node_modules"));
  // The generator takes fields with a default for required ones unless told otherwise; in a request they may be left out.
  const flags = ["--default-non-nullable=false"];
  for (const [name, file] of Object.entries(files)) await run(bin("openapi-typescript"), [file, ...flags, "-o", path.join(folder, `${name}.d.ts`)]);
  await cp(path.join(here, "client.ts"), path.join(folder, "client.ts"));
  await writeFile(path.join(folder, "package.json"), '{ "type": "module" }');
  const options = ["--strict", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext", "--types", "node", "--skipLibCheck"];
  await run(bin("tsc"), [...options, "client.ts"], { cwd: folder });
  console.log(`  TypeScript client: ${(await run(process.execPath, ["client.js"], { cwd: folder, env: { ...process.env, ...env } })).trim()}`);
}

async function pythonClient(files, env) {
  for (const [name, file] of Object.entries(files)) {
    const generate = ["-m", "openapi_python_client", "generate", "--path", file, "--meta", "none", "--output-path", path.join(work, "python", `polyclaw_${name}`), "--overwrite"];
    await mkdir(path.join(work, "python"), { recursive: true });
    await run(python, generate, { env: { ...process.env, PATH: `${path.dirname(python)}:${process.env.PATH}` } });
  }
  const said = await run(python, [path.join(here, "client.py")], { env: { ...process.env, ...env, PYTHONPATH: path.join(work, "python") } });
  console.log(`  Python client: ${said.trim()}`);
}

const daemon = await Daemon.start("http://127.0.0.1:9/v1");
const plane = new Plane();
try {
  await plane.start();
  const documents = {
    instance: await daemon.api("GET", "/openapi.json"),
    control: await plane.api("/openapi.json"),
  };
  const files = {};
  for (const [name, document] of Object.entries(documents)) {
    files[name] = path.join(work, `${name}.json`);
    await writeFile(files[name], JSON.stringify(document, null, 2));
    checkTexts(name, document);
    await lint(name, files[name]);
  }
  const env = { INSTANCE_URL: daemon.url, INSTANCE_TOKEN: TOKEN, CONTROL_URL: plane.url, CONTROL_TOKEN: plane.token };
  await typescript(files, env);
  await pythonClient(files, env);
} finally {
  await daemon.remove();
  await plane.kill();
  await rm(plane.home, { recursive: true, force: true });
  await rm(work, { recursive: true, force: true });
}

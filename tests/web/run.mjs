// Runs the browser tests, one file after the other: `node run.mjs [file]...`. Each file has its own environment and runs once:
// a test that fails by chance must be fixed. Prints the duration of each file at the end.
import { spawn } from "node:child_process";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";

const loud = (text) => console.log(`\x1b[1;31m${text}\x1b[0m`);
const folder = await mkdtemp(path.join(os.tmpdir(), "polyclaw-browser-"));
const env = { ...process.env, POLYCLAW_SHOTS: process.env.POLYCLAW_SHOTS ?? path.join(os.tmpdir(), `polyclaw-shots-${process.pid}`) };

/** Runs a file and returns its counts. A file that ends without a report has failed. */
async function run(file) {
  const counted = path.join(folder, "counted");
  await rm(counted, { force: true });
  const reports = ["--test-reporter=spec", "--test-reporter-destination=stdout", "--test-reporter=tap", `--test-reporter-destination=${counted}`];
  const child = spawn(process.execPath, ["--test", ...reports, path.join(import.meta.dirname, file)], { env, stdio: "inherit" });
  const code = await new Promise((resolve) => child.once("exit", resolve));
  const text = await readFile(counted, "utf8").catch(() => "");
  const [passed, failed] = ["pass", "fail"].map((word) => Number(new RegExp(`^# ${word} (\\d+)$`, "m").exec(text)?.[1] ?? 0));
  return { passed, failed: code === 0 ? 0 : Math.max(failed, 1) };
}

const files = process.argv.length > 2 ? process.argv.slice(2) : (await readdir(import.meta.dirname)).filter((name) => name.endsWith(".test.mjs")).sort();
const [broken, sum, took] = [[], { passed: 0, failed: 0 }, []];
for (const file of files) {
  console.log(`\x1b[1m${file}\x1b[0m`);
  const began = Date.now();
  const ended = await run(file);
  took.push(`${file} ${Math.round((Date.now() - began) / 1000)} s`);
  if (ended.failed) broken.push(file);
  sum.passed += ended.passed;
  sum.failed += ended.failed;
}
await rm(folder, { recursive: true, force: true });
if (broken.length) loud(`failed: ${broken.join(", ")}`);
console.log(took.join(", "));
console.log(`${sum.passed} passed, ${sum.failed} failed`);
process.exitCode = broken.length ? 1 : 0;

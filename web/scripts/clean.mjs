// Empties web/dist except for .gitkeep, which keeps the folder in git: the build of the binary watches it.
import { mkdir, readdir, rm } from "node:fs/promises";
import path from "node:path";

const dist = path.join(import.meta.dirname, "../dist");
await mkdir(dist, { recursive: true });
const old = (await readdir(dist)).filter((name) => name !== ".gitkeep");
await Promise.all(old.map((name) => rm(path.join(dist, name), { recursive: true })));

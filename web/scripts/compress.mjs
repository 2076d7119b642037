// Writes a gzip file next to every built file and prints the size of a first visit.
import { readFile, readdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { gzipSync } from "node:zlib";

const dist = path.join(import.meta.dirname, "../dist");
const files = (await readdir(dist, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile() && !entry.name.endsWith(".gz") && entry.name !== ".gitkeep");
const sizes = new Map();
for (const entry of files) {
  const file = path.join(entry.parentPath, entry.name);
  const packed = gzipSync(await readFile(file), { level: 9 });
  await writeFile(`${file}.gz`, packed);
  sizes.set(path.relative(dist, file), packed.length);
}

const index = await readFile(path.join(dist, "index.html"), "utf8");
const first = [...sizes].filter(([name]) => name === "index.html" || index.includes(name));
const sum = (list) => (list.reduce((all, [, size]) => all + size, 0) / 1024).toFixed(1);
console.log(`first load ${sum(first)} KB, everything ${sum([...sizes])} KB (gzip)`);

/** The lines of two texts, side by side in one list: what stayed, what went, what came. */
export interface DiffLine { kind: "same" | "gone" | "new"; text: string; before: number | null; after: number | null }

/** Beyond this many lines on a side, the middle is shown as replaced whole: nobody reads such a table line by line. */
const MOST = 4000;

export function diff(before: string, after: string): DiffLine[] {
  const [old, now] = [before.split("\n"), after.split("\n")];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail += 1;
  const middle = between(old.slice(head, old.length - tail), now.slice(head, now.length - tail));
  const same = (text: string) => ({ kind: "same" as const, text });
  return numbered([...old.slice(0, head).map(same), ...middle, ...old.slice(old.length - tail).map(same)]);
}

type Plain = Pick<DiffLine, "kind" | "text">;

function between(old: string[], now: string[]): Plain[] {
  const gone = (text: string): Plain => ({ kind: "gone", text });
  const fresh = (text: string): Plain => ({ kind: "new", text });
  if (old.length > MOST || now.length > MOST || !old.length || !now.length) return [...old.map(gone), ...now.map(fresh)];
  const width = now.length + 1;
  // How many lines both still share, from here to the end.
  const shared = new Uint16Array((old.length + 1) * width);
  for (let a = old.length - 1; a >= 0; a -= 1) {
    for (let b = now.length - 1; b >= 0; b -= 1) {
      shared[a * width + b] = old[a] === now[b] ? shared[(a + 1) * width + b + 1] + 1 : Math.max(shared[(a + 1) * width + b], shared[a * width + b + 1]);
    }
  }
  const lines: Plain[] = [];
  let [a, b] = [0, 0];
  while (a < old.length && b < now.length) {
    if (old[a] === now[b]) { lines.push({ kind: "same", text: old[a] }); a += 1; b += 1; }
    else if (shared[(a + 1) * width + b] >= shared[a * width + b + 1]) lines.push(gone(old[a++]));
    else lines.push(fresh(now[b++]));
  }
  return [...lines, ...old.slice(a).map(gone), ...now.slice(b).map(fresh)];
}

function numbered(lines: Plain[]): DiffLine[] {
  let [before, after] = [0, 0];
  return lines.map((line) => ({ ...line, before: line.kind === "new" ? null : ++before, after: line.kind === "gone" ? null : ++after }));
}

/** Only what changed, with a few lines around it. */
export function hunks(lines: DiffLine[], around = 3): DiffLine[][] {
  const near = lines.map((_, at) => lines.slice(Math.max(0, at - around), at + around + 1).some((line) => line.kind !== "same"));
  const found: DiffLine[][] = [];
  lines.forEach((line, at) => {
    if (!near[at]) return;
    if (!near[at - 1]) found.push([]);
    found.at(-1)?.push(line);
  });
  return found;
}

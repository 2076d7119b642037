/** A line-based diff of two texts. */
export interface DiffLine { kind: "same" | "removed" | "added"; text: string; before: number | null; after: number | null }

/** If a side has more changed lines than this, they are shown as replaced as a whole. */
const MAX_LINES = 4000;

export function diffLines(before: string, after: string): DiffLine[] {
  const [old, now] = [before.split("\n"), after.split("\n")];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail += 1;
  const middle = diffMiddle(old.slice(head, old.length - tail), now.slice(head, now.length - tail));
  const same = (text: string) => ({ kind: "same" as const, text });
  return addLineNumbers([...old.slice(0, head).map(same), ...middle, ...old.slice(old.length - tail).map(same)]);
}

type UnnumberedLine = Pick<DiffLine, "kind" | "text">;

function diffMiddle(old: string[], now: string[]): UnnumberedLine[] {
  const removed = (text: string): UnnumberedLine => ({ kind: "removed", text });
  const added = (text: string): UnnumberedLine => ({ kind: "added", text });
  if (old.length > MAX_LINES || now.length > MAX_LINES || !old.length || !now.length) return [...old.map(removed), ...now.map(added)];
  const width = now.length + 1;
  // Length of the longest common subsequence from each position to the end.
  const shared = new Uint16Array((old.length + 1) * width);
  for (let a = old.length - 1; a >= 0; a -= 1) {
    for (let b = now.length - 1; b >= 0; b -= 1) {
      shared[a * width + b] = old[a] === now[b] ? shared[(a + 1) * width + b + 1] + 1 : Math.max(shared[(a + 1) * width + b], shared[a * width + b + 1]);
    }
  }
  const lines: UnnumberedLine[] = [];
  let [a, b] = [0, 0];
  while (a < old.length && b < now.length) {
    if (old[a] === now[b]) { lines.push({ kind: "same", text: old[a] }); a += 1; b += 1; }
    else if (shared[(a + 1) * width + b] >= shared[a * width + b + 1]) lines.push(removed(old[a++]));
    else lines.push(added(now[b++]));
  }
  return [...lines, ...old.slice(a).map(removed), ...now.slice(b).map(added)];
}

function addLineNumbers(lines: UnnumberedLine[]): DiffLine[] {
  let [before, after] = [0, 0];
  return lines.map((line) => ({ ...line, before: line.kind === "added" ? null : ++before, after: line.kind === "removed" ? null : ++after }));
}

/** The changed lines with a few lines of context. */
export function hunks(lines: DiffLine[], around = 3): DiffLine[][] {
  const isNearChange = lines.map((_, at) => lines.slice(Math.max(0, at - around), at + around + 1).some((line) => line.kind !== "same"));
  const hunks: DiffLine[][] = [];
  lines.forEach((line, at) => {
    if (!isNearChange[at]) return;
    if (!isNearChange[at - 1]) hunks.push([]);
    hunks.at(-1)?.push(line);
  });
  return hunks;
}

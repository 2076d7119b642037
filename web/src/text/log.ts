/** A line of a daemon's log, as far as it can be told apart. */
export type Level = "error" | "warn" | "info" | "debug" | "trace";
export interface LogLine { n: number; time: string | null; level: Level | null; text: string }

const LINE = /^(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d))\s+(ERROR|WARN|INFO|DEBUG|TRACE)\s+(.*)$/;
// Colours of a terminal mean nothing here.
// eslint-disable-next-line no-control-regex
const COLOUR = /\u001b\[[0-9;]*m/g;

export function logLine(given: string, n: number): LogLine {
  const text = given.replace(COLOUR, "");
  const found = LINE.exec(text);
  if (!found) return { n, time: null, level: null, text };
  return { n, time: found[1], level: found[2].toLowerCase() as Level, text: found[3] };
}

const ORDER: Level[] = ["trace", "debug", "info", "warn", "error"];
/** A line without a level belongs to the one before it, and is shown with any. */
export const atLeast = (line: LogLine, level: Level | "") => !level || line.level === null || ORDER.indexOf(line.level) >= ORDER.indexOf(level);

/** A line of a daemon's log, as far as it can be told apart. */
export type Level = "error" | "warn" | "info" | "debug" | "trace";
export interface LogLine {
  n: number; time: string | null; level: Level | null;
  /** All of it behind the level. */
  text: string;
  /** What it says, and the facts around it: what people read comes first. */
  message: string; facts: string;
}

const LINE = /^(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d))\s+(ERROR|WARN|INFO|DEBUG|TRACE)\s+(.*)$/;
// Colours of a terminal mean nothing here.
// eslint-disable-next-line no-control-regex
const COLOUR = /\u001b\[[0-9;]*m/g;

export function logLine(given: string, n: number): LogLine {
  const text = given.replace(COLOUR, "");
  const found = LINE.exec(text);
  if (!found) return { n, time: null, level: null, text, message: text, facts: "" };
  return { n, time: found[1], level: found[2].toLowerCase() as Level, text: found[3], ...told(found[3]) };
}

/** The spans a line was written in stand before its message, the fields of the event behind it. */
const SPANS = /^((?:[\w.-]+(?:\{[^}]*\})?:)*[\w.-]+\{[^}]*\}:) /;
const FIELDS = /(?:^|\s)[\w.]+=.*$/;

function told(text: string): Pick<LogLine, "message" | "facts"> {
  const spans = SPANS.exec(text)?.[1] ?? "";
  const said = spans ? text.slice(spans.length + 1) : text;
  const fields = FIELDS.exec(said)?.[0] ?? "";
  const message = said.slice(0, said.length - fields.length).trim();
  return { message: message || fields.trim(), facts: [message && fields.trim(), spans].filter(Boolean).join(" ") };
}

const ORDER: Level[] = ["trace", "debug", "info", "warn", "error"];
/** A line without a level belongs to the one before it, and is shown with any. */
export const atLeast = (line: LogLine, level: Level | "") => !level || line.level === null || ORDER.indexOf(line.level) >= ORDER.indexOf(level);

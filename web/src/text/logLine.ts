/** A parsed line of a daemon's log. */
export type LogLevel = "error" | "warn" | "info" | "debug" | "trace";
export interface LogLine {
  n: number; time: string | null; level: LogLevel | null;
  /** The text after the level. */
  text: string;
  /** The message, and separately the fields and spans around it. */
  message: string; fields: string;
}

const LINE = /^(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d))\s+(ERROR|WARN|INFO|DEBUG|TRACE)\s+(.*)$/;
// Remove terminal colors.
// eslint-disable-next-line no-control-regex
const ANSI_COLOR = /\u001b\[[0-9;]*m/g;

export function parseLogLine(given: string, n: number): LogLine {
  const text = given.replace(ANSI_COLOR, "");
  const found = LINE.exec(text);
  if (!found) return { n, time: null, level: null, text, message: text, fields: "" };
  return { n, time: found[1], level: found[2].toLowerCase() as LogLevel, text: found[3], ...splitMessage(found[3]) };
}

/** The format is: spans, message, fields of the event. */
const SPANS = /^((?:[\w.-]+(?:\{[^}]*\})?:)*[\w.-]+\{[^}]*\}:) /;
const FIELDS = /(?:^|\s)[\w.]+=.*$/;

function splitMessage(text: string): Pick<LogLine, "message" | "fields"> {
  const spans = SPANS.exec(text)?.[1] ?? "";
  const rest = spans ? text.slice(spans.length + 1) : text;
  const ownFields = FIELDS.exec(rest)?.[0] ?? "";
  const message = rest.slice(0, rest.length - ownFields.length).trim();
  return { message: message || ownFields.trim(), fields: [message && ownFields.trim(), spans].filter(Boolean).join(" ") };
}

const LEVELS: LogLevel[] = ["trace", "debug", "info", "warn", "error"];
/** A line without a level belongs to the line before it and is always shown. */
export const isAtLeast = (line: LogLine, level: LogLevel | "") => !level || line.level === null || LEVELS.indexOf(line.level) >= LEVELS.indexOf(level);

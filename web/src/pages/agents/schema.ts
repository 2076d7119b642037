import type { JsonSchema } from "../../api/instance";

/** Conversion between schemas and form fields: the kind of a field, and its text as a value and back. */
export type FieldKind = "text" | "multiline" | "number" | "switch" | "choice" | "list" | "group" | "json";

/** The schema without "or null". */
export function withoutNull(schema: JsonSchema): JsonSchema {
  const inner = schema.anyOf?.find((one) => one.type !== "null");
  const only = inner ? { ...inner, description: schema.description ?? inner.description } : schema;
  return only.enum ? { ...only, enum: only.enum.filter(Boolean) } : only;
}

export function fieldKind(name: string, given: JsonSchema): FieldKind {
  const schema = withoutNull(given);
  const types = [schema.type ?? []].flat().filter((type) => type !== "null");
  if (schema.enum) return "choice";
  if (types.includes("string") || schema.oneOf) return name === "system_prompt" || name === "description" ? "multiline" : "text";
  if (types.includes("boolean")) return "switch";
  if (types.includes("integer") || types.includes("number")) return "number";
  if (types.includes("array")) return "list";
  return schema.properties ? "group" : "json";
}

export function fieldText(kind: FieldKind, value: unknown): string {
  if (value === null || value === undefined) return "";
  if (kind === "list" && Array.isArray(value)) return value.join("\n");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Returns `undefined` for an empty text, so the field is omitted. */
export function parseFieldText(kind: FieldKind, text: string): unknown {
  const trimmed = text.trim();
  if (!trimmed) return undefined;
  if (kind === "number") return Number(trimmed);
  if (kind === "switch") return trimmed === "true";
  if (kind === "list") return trimmed.split("\n").map((line) => line.trim()).filter(Boolean);
  if (kind === "json" || (kind === "text" && trimmed.startsWith("{"))) return JSON.parse(trimmed) as unknown;
  return kind === "multiline" ? text : trimmed;
}

/** The JSON merge patch from one value to another. Null removes a field. */
export function mergePatch(before: Record<string, unknown>, after: Record<string, unknown>): Record<string, unknown> {
  const patch: Record<string, unknown> = {};
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, now] = [before[name], after[name]];
    if (JSON.stringify(old) === JSON.stringify(now)) continue;
    const areGroups = isGroup(old) && isGroup(now);
    patch[name] = areGroups ? mergePatch(old, now) : now ?? null;
  }
  return patch;
}

const isGroup = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);

// Generates TypeScript types from an OpenAPI document: `node scripts/types.mjs <URL or file> > src/api/instance.types.ts`,
// and `… > src/api/control.types.ts` for the document of a control plane. A test compares the committed files with the
// documents that the running binary serves.
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";

const head = ({ info }) => `// Written by scripts/types.mjs from the OpenAPI document of ${/control/.test(info.title) ? "a control plane" : "an instance"}. Do not edit.\n`;

export function typesOf(document) {
  const schemas = Object.entries(document.components.schemas).sort(([a], [b]) => (a < b ? -1 : 1));
  return `${head(document)}\n${schemas.map(([name, schema]) => `${comment(schema.description)}export type ${name} = ${type(schema, "")};\n`).join("\n")}`;
}

const comment = (text, indent = "") => (text ? `${indent}/** ${text.replace(/\s+/g, " ").replaceAll("*/", "* /").trim()} */\n` : "");

function type(schema, indent) {
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema === true) return "unknown";
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  for (const [field, sign] of [["allOf", " & "], ["oneOf", " | "], ["anyOf", " | "]]) {
    if (!schema[field]) continue;
    const parts = [...new Set(schema[field].map((one) => wrapped(type(one, indent))))].join(sign);
    // Properties common to all alternatives are intersected with them.
    return schema.properties ? `${object(schema, indent)} & (${parts})` : parts;
  }
  // The schema has no constraints, so the value can be anything.
  if (!schema.type && !schema.properties && !schema.additionalProperties) return "unknown";
  const kinds = [schema.type ?? "object"].flat();
  return [...new Set(kinds.map((kind) => single(kind, schema, indent)))].join(" | ");
}

const wrapped = (text) => (text.includes(" | ") && !text.startsWith("{") ? `(${text})` : text);

function single(kind, schema, indent) {
  if (kind === "array") return `${wrapped(type(schema.items ?? {}, indent))}[]`;
  if (kind === "object") return object(schema, indent);
  return { integer: "number", number: "number", string: "string", boolean: "boolean", null: "null" }[kind];
}

function object(schema, indent) {
  const fields = Object.entries(schema.properties ?? {});
  if (!fields.length) {
    const inside = typeof schema.additionalProperties === "object" ? type(schema.additionalProperties, indent) : "unknown";
    return `Record<string, ${inside}>`;
  }
  const deeper = `${indent}  `;
  const lines = fields.map(([name, field]) =>
    `${comment(field.description, deeper)}${deeper}${name}${schema.required?.includes(name) ? "" : "?"}: ${type(field, deeper)};\n`);
  return `{\n${lines.join("")}${indent}}`;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const from = process.argv[2];
  const text = /^https?:/.test(from) ? await (await fetch(from, { headers: { authorization: `Bearer ${process.env.POLYCLAW_TOKEN}` } })).text() : await readFile(from, "utf8");
  process.stdout.write(typesOf(JSON.parse(text)));
}

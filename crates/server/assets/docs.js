// Renders the OpenAPI document as a page. All of its text is inserted as text, never as HTML.
"use strict";

const METHODS = ["get", "post", "put", "patch", "delete"];

function appendElement(name, text, parent) {
  const node = document.createElement(name);
  if (text) node.textContent = text;
  if (parent) parent.append(node);
  return node;
}

function schemaText(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.type === "array") return `[${schemaText(schema.items)}]`;
  return [].concat(schema.type || "object").join(" or ");
}

function renderOperation(path, method, operation, parent) {
  const section = appendElement("section", "", parent);
  appendElement("h3", `${method.toUpperCase()} ${path}`, section);
  if (operation.summary || operation.description) appendElement("p", operation.summary || operation.description, section);
  const list = appendElement("ul", "", section);
  for (const one of operation.parameters || []) {
    appendElement("li", `${one.in} ${one.name}: ${schemaText(one.schema)}${one.description ? ` (${one.description})` : ""}`, list);
  }
  const body = operation.requestBody?.content?.["application/json"]?.schema;
  if (body) appendElement("li", `body: ${schemaText(body)}`, list);
  for (const [status, answer] of Object.entries(operation.responses || {})) {
    const schema = Object.values(answer.content || {})[0]?.schema;
    appendElement("li", `${status}: ${schemaText(schema) || answer.description || ""}`, list);
  }
}

async function showDocument() {
  const status = document.getElementById("status");
  const login = localStorage.getItem("polyclaw.login");
  const response = await fetch("/api/openapi.json", { headers: login ? { "polyclaw-login": login } : {} });
  if (!response.ok) {
    status.textContent = "You are not logged in. Open the link that `polyclaw up` or `polyclaw control` prints.";
    return;
  }
  const api = await response.json();
  status.textContent = `${api.info.title} ${api.info.version}. The document itself is at /api/openapi.json.`;
  const main = document.getElementById("docs");
  for (const [path, item] of Object.entries(api.paths)) {
    for (const method of METHODS) if (item[method]) renderOperation(path, method, item[method], main);
  }
}

showDocument().catch((error) => { document.getElementById("status").textContent = String(error); });

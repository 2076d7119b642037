// Shows the OpenAPI document as a page. Text is put in as text: nothing of the document is taken for markup.
"use strict";

const METHODS = ["get", "post", "put", "patch", "delete"];

function element(name, text, parent) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function shape(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.type === "array") return `[${shape(schema.items)}]`;
  return [].concat(schema.type || "object").join(" or ");
}

function operation(path, method, called, parent) {
  const part = element("section", "", parent);
  element("h3", `${method.toUpperCase()} ${path}`, part);
  if (called.summary || called.description) element("p", called.summary || called.description, part);
  const list = element("ul", "", part);
  for (const one of called.parameters || []) {
    element("li", `${one.in} ${one.name}: ${shape(one.schema)}${one.description ? ` (${one.description})` : ""}`, list);
  }
  const body = called.requestBody?.content?.["application/json"]?.schema;
  if (body) element("li", `body: ${shape(body)}`, list);
  for (const [status, answer] of Object.entries(called.responses || {})) {
    const schema = Object.values(answer.content || {})[0]?.schema;
    element("li", `${status}: ${shape(schema) || answer.description || ""}`, list);
  }
}

async function show() {
  const state = document.getElementById("state");
  const login = localStorage.getItem("polyclaw.login");
  const answer = await fetch("/api/openapi.json", { headers: login ? { "polyclaw-login": login } : {} });
  if (!answer.ok) {
    state.textContent = "Open the link that `polyclaw up` or `polyclaw control` prints: this page needs it once.";
    return;
  }
  const api = await answer.json();
  state.textContent = `${api.info.title} ${api.info.version}. The document itself is at /api/openapi.json.`;
  const main = document.getElementById("docs");
  for (const [path, item] of Object.entries(api.paths)) {
    for (const method of METHODS) if (item[method]) operation(path, method, item[method], main);
  }
}

show().catch((error) => { document.getElementById("state").textContent = String(error); });

// How the control plane speaks: JSON, errors of one shape, pages with cursors.
export class Refusal extends Error {
  constructor(status, code, message, more = {}) {
    super(message);
    Object.assign(this, { status, code, more });
  }
}

export function json(response, status, body, headers = {}) {
  const text = body === undefined ? "" : JSON.stringify(body);
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text), ...headers });
  response.end(text);
}

export function refuse(response, error) {
  const { status = 500, code = "internal", more = {} } = error;
  if (status === 500) console.error(error);
  json(response, status, { error: { code, message: error.message, ...more } });
}

export async function bodyOf(request) {
  let text = "";
  for await (const piece of request) text += piece;
  if (!text) return {};
  try { return JSON.parse(text); } catch { throw new Refusal(400, "malformed_json", "the body is not JSON"); }
}

/** A page of a list; the cursor is where the next one begins. */
export function page(name, list, query) {
  const limit = Number(query.get("limit") ?? 100);
  const from = Number(query.get("cursor") ?? 0);
  const next = from + limit < list.length ? String(from + limit) : null;
  return { [name]: list.slice(from, from + limit), next_cursor: next };
}

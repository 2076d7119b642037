/** A request to an instance, parsed from a line such as `main: POST /api/v1/sessions/a%3Ab/messages → 200`. */
export interface ProxiedRequest { method: string; noun: string; id: string; rest: string; status: number | null }

export function parseProxiedRequest(detail: string): ProxiedRequest | null {
  const found = /^.*?: (GET|POST|PUT|PATCH|DELETE) \/(?:api\/)?(?:v1\/)?(\S*?)(?: → (\d+))?$/.exec(detail);
  if (!found) return null;
  const [noun = "", id = "", ...rest] = found[2].split("/").map(decodePart);
  return { method: found[1], noun, id, rest: rest.join("/"), status: found[3] ? Number(found[3]) : null };
}

/** An escape sequence that was cut off stays as it is. */
function decodePart(part: string): string {
  try { return decodeURIComponent(part); } catch { return part; }
}

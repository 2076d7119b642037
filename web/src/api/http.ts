/** Calls to a server that shares our origin. What goes wrong is always a `Problem`. */

import { loginHeaders } from "./login";

/** Where the server is: this page is at its root, or in its folder `app`. */
export const root = location.pathname.replace(/(app\/)?[^/]*$/, "");

export class Problem extends Error {
  constructor(
    /** 0: nobody answered. */
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string | null = null,
    /** Whatever else the server said about it. */
    readonly more: Record<string, unknown> = {},
  ) {
    super(message);
  }
}

export interface Options {
  body?: unknown;
  /** A body that is not JSON, with its type in `headers`. */
  raw?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Told of every call that needs a login. */
let onUnauthorized = () => {};
export const whenUnauthorized = (run: () => void) => { onUnauthorized = run; };

/** Told with every call whether anybody answered. */
let onAnswer = (_isThere: boolean) => {};
export const whenAnswered = (run: (isThere: boolean) => void) => { onAnswer = run; };
/** What a proxy says when there is nobody behind it. */
const NOBODY = ["http_502", "http_503", "http_504"];
export const isNobody = (problem: unknown): boolean => problem instanceof Problem && (problem.status === 0 || NOBODY.includes(problem.code));
/** The call was understood and refused: made again it is refused again. */
export const isRefused = (problem: unknown): boolean => problem instanceof Problem && problem.status >= 400 && problem.status < 500 && ![401, 408, 429].includes(problem.status);

export async function answer(method: string, path: string, options: Options = {}): Promise<Response> {
  const { body, raw, headers, signal } = options;
  const type: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
  const sent = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  const response = await fetch(root + path, { method, headers: { ...loginHeaders(), ...type, ...headers }, body: sent, signal }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    onAnswer(false);
    throw new Problem(0, "unreachable", "The server does not answer.");
  });
  if (response.ok) { onAnswer(true); return response; }
  if (response.status === 401) onUnauthorized();
  const problem = await problemOf(response);
  onAnswer(!isNobody(problem));
  throw problem;
}

async function problemOf(response: Response): Promise<Problem> {
  const told = await response.json().catch(() => null) as { error?: Record<string, unknown> } | null;
  const { code, message, hint, ...more } = told?.error ?? {};
  const plain = `${response.status} ${response.statusText}`.trim();
  return new Problem(response.status, String(code ?? `http_${response.status}`), String(message ?? plain), hint ? String(hint) : null, more);
}

export async function call<T>(method: string, path: string, options: Options = {}): Promise<T> {
  const response = await answer(method, path, options);
  if (response.status === 204 || response.headers.get("content-length") === "0") return undefined as T;
  return await response.json() as T;
}

/** A whole list, read page by page. */
export async function all<T, P extends { next_cursor?: string | null }>(read: (cursor: string | null) => Promise<P>, part: (page: P) => T[]): Promise<T[]> {
  const found: T[] = [];
  for (let cursor: string | null = null, more = true; more; more = cursor !== null) {
    const page: P = await read(cursor);
    found.push(...part(page));
    cursor = page.next_cursor ?? null;
  }
  return found;
}

/** `?a=1&b=2`, without what is not set. */
export function query(values: Record<string, string | number | boolean | null | undefined>): string {
  const set = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return set.length ? `?${new URLSearchParams(set.map(([name, value]) => [name, String(value)]))}` : "";
}

export const socketAddress = (path: string): string => `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${root}${path}`;

/** HTTP calls to the server that serves this page. Every failure is an `ApiError`. */

import { loginHeaders } from "./login";

/** Path of the server. The page is served from its root or from its folder `app`. */
export const rootPath = location.pathname.replace(/(app\/)?[^/]*$/, "");

export class ApiError extends Error {
  constructor(
    /** 0 if there was no response. */
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string | null = null,
    /** The other fields of the error response. */
    readonly details: Record<string, unknown> = {},
  ) {
    super(message);
  }
}

export interface RequestOptions {
  body?: unknown;
  /** A body that is not JSON. Set its type in `headers`. */
  raw?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** Called when a response requires a login. */
let unauthorizedHandler = () => {};
export const onUnauthorized = (run: () => void) => { unauthorizedHandler = run; };

/** Called after every request with whether the server could be reached. */
let reachabilityHandler = (_isReachable: boolean) => {};
export const onReachability = (run: (isThere: boolean) => void) => { reachabilityHandler = run; };
/** Codes of the responses of a proxy that cannot reach the server behind it. */
const UNREACHABLE_CODES = ["http_502", "http_503", "http_504"];
export const isUnreachable = (error: unknown): boolean => error instanceof ApiError && (error.status === 0 || UNREACHABLE_CODES.includes(error.code));
/** The server understood and rejected the request, so a retry would fail too. */
export const isPermanentError = (error: unknown): boolean => error instanceof ApiError && error.status >= 400 && error.status < 500 && ![401, 408, 429].includes(error.status);

export async function request(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
  const { body, raw, headers, signal } = options;
  const type: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
  const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  const response = await fetch(rootPath + path, { method, headers: { ...loginHeaders(), ...type, ...headers }, body: payload, signal }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    reachabilityHandler(false);
    throw new ApiError(0, "unreachable", "The server does not answer.");
  });
  if (response.ok) { reachabilityHandler(true); return response; }
  if (response.status === 401) unauthorizedHandler();
  const error = await errorFromResponse(response);
  reachabilityHandler(!isUnreachable(error));
  throw error;
}

async function errorFromResponse(response: Response): Promise<ApiError> {
  const parsed = await response.json().catch(() => null) as { error?: Record<string, unknown> } | null;
  const { code, message, hint, ...more } = parsed?.error ?? {};
  const statusLine = `${response.status} ${response.statusText}`.trim();
  return new ApiError(response.status, String(code ?? `http_${response.status}`), String(message ?? statusLine), hint ? String(hint) : null, more);
}

export async function requestJson<T>(method: string, path: string, options: RequestOptions = {}): Promise<T> {
  const response = await request(method, path, options);
  if (response.status === 204 || response.headers.get("content-length") === "0") return undefined as T;
  return await response.json() as T;
}

/** Reads all pages of a list. */
export async function fetchAllPages<T, P extends { next_cursor?: string | null }>(fetchPage: (cursor: string | null) => Promise<P>, itemsOf: (page: P) => T[]): Promise<T[]> {
  const items: T[] = [];
  for (let cursor: string | null = null, more = true; more; more = cursor !== null) {
    const page: P = await fetchPage(cursor);
    items.push(...itemsOf(page));
    cursor = page.next_cursor ?? null;
  }
  return items;
}

/** Builds `?a=1&b=2` and omits values that are not set. */
export function queryString(values: Record<string, string | number | boolean | null | undefined>): string {
  const set = Object.entries(values).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return set.length ? `?${new URLSearchParams(set.map(([name, value]) => [name, String(value)]))}` : "";
}

export const socketUrl = (path: string): string => `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${rootPath}${path}`;

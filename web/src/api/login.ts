/** The login of this browser. Scripts cannot read its cookie, but browsers send cookies to every port of a host. Therefore a
    login has a second part: a key that only pages of this exact origin can read, and without which the cookie is useless. */
const STORAGE_KEY = "polyclaw.login";
/** Request header that carries the key. */
const LOGIN_HEADER = "polyclaw-login";
/** WebSocket protocol. Sockets cannot send custom headers, so the name of a second protocol carries the key. */
const SOCKET_PROTOCOL = "polyclaw";

const storedKey = (): string | null => localStorage.getItem(STORAGE_KEY);
export const clearLogin = () => localStorage.removeItem(STORAGE_KEY);

/** Headers that authenticate a request. */
export const loginHeaders = (): Record<string, string> => { const loginKey = storedKey(); return loginKey ? { [LOGIN_HEADER]: loginKey } : {}; };

/** Protocols that authenticate a socket. */
export const loginProtocols = (): string[] => { const loginKey = storedKey(); return loginKey ? [SOCKET_PROTOCOL, `${SOCKET_PROTOCOL}.login.${loginKey}`] : []; };

/** Exchanges a one-time code for a login. */
export async function redeemCode(root: string, code: string): Promise<boolean> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${root}login`, { method: "POST", headers, body: JSON.stringify({ code }) }).catch(() => null);
  if (!response?.ok) return false;
  localStorage.setItem(STORAGE_KEY, (await response.json() as { key: string }).key);
  return true;
}

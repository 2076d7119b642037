/** The login of this browser. Its cookie no script can read, but browsers send cookies to every port of a host; so it has a second
    half, a key that only pages of this very origin can read, and opens nothing without it. */
const STORAGE_KEY = "polyclaw.login";
/** How calls show the key. */
const LOGIN_HEADER = "polyclaw-login";
/** Spoken over sockets, which cannot send headers of ours: the key is in the name of a second protocol. */
const SOCKET_PROTOCOL = "polyclaw";

const storedKey = (): string | null => localStorage.getItem(STORAGE_KEY);
export const clearLogin = () => localStorage.removeItem(STORAGE_KEY);

/** What a call sends beside its own headers. */
export const loginHeaders = (): Record<string, string> => { const loginKey = storedKey(); return loginKey ? { [LOGIN_HEADER]: loginKey } : {}; };

/** The protocols that a socket names. */
export const loginProtocols = (): string[] => { const loginKey = storedKey(); return loginKey ? [SOCKET_PROTOCOL, `${SOCKET_PROTOCOL}.login.${loginKey}`] : []; };

/** Trades a one-time code for a login. */
export async function redeemCode(root: string, code: string): Promise<boolean> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${root}login`, { method: "POST", headers, body: JSON.stringify({ code }) }).catch(() => null);
  if (!response?.ok) return false;
  localStorage.setItem(STORAGE_KEY, (await response.json() as { key: string }).key);
  return true;
}

/** The login of this browser. Its cookie no script can read, but browsers send cookies to every port of a host; so it has a second
    half, a key that only pages of this very origin can read, and opens nothing without it. */
const KEPT_AS = "polyclaw.login";
/** How calls show the key. */
const HEADER = "polyclaw-login";
/** Spoken over sockets, which cannot send headers of ours: the key is in the name of a second protocol. */
const PROTOCOL = "polyclaw";

const key = (): string | null => localStorage.getItem(KEPT_AS);
export const forget = () => localStorage.removeItem(KEPT_AS);

/** What a call sends beside its own headers. */
export const loginHeaders = (): Record<string, string> => { const own = key(); return own ? { [HEADER]: own } : {}; };

/** The protocols that a socket names. */
export const loginProtocols = (): string[] => { const own = key(); return own ? [PROTOCOL, `${PROTOCOL}.login.${own}`] : []; };

/** Trades a one-time code for a login. */
export async function redeem(root: string, code: string): Promise<boolean> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${root}login`, { method: "POST", headers, body: JSON.stringify({ code }) }).catch(() => null);
  if (!answer?.ok) return false;
  localStorage.setItem(KEPT_AS, (await answer.json() as { key: string }).key);
  return true;
}

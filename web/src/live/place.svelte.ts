import { control } from "../api/control";
import { Problem, call, root, whenUnauthorized } from "../api/http";
import { Instance } from "../api/instance";
import { forget, redeem } from "../api/login";
import { rights, type Scope } from "./rights.svelte";

/** Who serves this page: a control plane with many instances, or one instance alone. */
export type Mode = "looking" | "control" | "lone" | "away";
/** The name of the only instance where there is no control plane to name it. */
export const LONE = "this";

/** What became of a login. */
export type Entry = "in" | "wrong" | "failed";

/** The one-time code of the link that led here. It is taken out of the address before anybody sees it. */
let linkCode = new URLSearchParams(location.search).get("code");
if (linkCode !== null) history.replaceState(null, "", location.pathname + location.hash);

class Place {
  mode = $state<Mode>("looking");
  needsLogin = $state(false);
  /** The link that led here was used before. */
  usedLink = $state(false);
  #instances = new Map<string, Instance>();

  constructor() {
    whenUnauthorized(() => { this.needsLogin = true; });
  }

  /** Both say how they are to whoever asks; an instance names its store, a control plane has none to name. */
  async find(): Promise<void> {
    await this.#useLink();
    const health = await fetch(`${root}health`).then((answer) => answer.json() as Promise<{ store?: unknown }>).catch(() => null);
    if (health?.store) return this.#findLone();
    try {
      rights.scope = (await control.version()).scope as Scope;
      this.mode = "control";
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (problem.status === 404) return this.#findLone();
      this.mode = problem.status === 401 ? "control" : "away";
    }
  }

  async #findLone() {
    // Asked first: what is shown to those who are in would open sockets.
    await call("GET", "api/v1/status").catch(() => {});
    this.mode = "lone";
  }

  instance(id: string): Instance {
    const found = this.#instances.get(id) ?? new Instance(id, this.mode === "lone" ? "api/v1" : control.gateway(id));
    this.#instances.set(id, found);
    return found;
  }

  /** Trades the one-time code of a link for a login, once. Where that fails, an earlier login may still be good. */
  async #useLink() {
    const code = linkCode;
    linkCode = null;
    if (code !== null) this.usedLink = !(await redeem(root, code));
  }

  /** Ends the login of this browser. */
  async logout() {
    await call("DELETE", `${this.mode === "lone" ? "api/v1" : "api"}/logins/current`).catch(() => {});
    forget();
    location.reload();
  }

  /** Trades the token for a one-time code and that for a login. The token stands in no address. */
  async login(token: string): Promise<Entry> {
    const path = this.mode === "lone" ? "api/v1/logins" : "api/logins";
    const headers = { authorization: `Bearer ${token}` };
    const made = await fetch(root + path, { method: "POST", headers }).catch(() => null);
    if (!made?.ok) return made?.status === 401 ? "wrong" : "failed";
    const { code } = await made.json() as { code: string };
    if (!(await redeem(root, code))) return "failed";
    this.needsLogin = false;
    await this.find();
    return this.needsLogin ? "failed" : "in";
  }
}

export const place = new Place();

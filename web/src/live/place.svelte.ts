import { control } from "../api/control";
import { Problem, call, root, whenUnauthorized } from "../api/http";
import { Instance } from "../api/instance";

/** Who serves this page: a control plane with many instances, or one instance alone. */
export type Mode = "looking" | "control" | "lone" | "away";
/** The name of the only instance where there is no control plane to name it. */
export const LONE = "this";

class Place {
  mode = $state<Mode>("looking");
  needsLogin = $state(false);
  #instances = new Map<string, Instance>();

  constructor() {
    whenUnauthorized(() => { this.needsLogin = true; });
  }

  /** An instance has this page in its folder `app`, a control plane at its root; but for that, either may be it. */
  async find(): Promise<void> {
    if (location.pathname.endsWith("/app/") && (await fetch(`${root}api/v1/health`).catch(() => null))?.ok) return this.#findLone();
    try {
      await control.version();
      this.mode = "control";
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (problem.status === 404) return this.#findLone();
      this.mode = problem.status === 401 ? "control" : "away";
    }
  }

  async #findLone() {
    this.mode = "lone";
    await call("GET", "api/v1/status").catch(() => {});
  }

  instance(id: string): Instance {
    const found = this.#instances.get(id) ?? new Instance(id, this.mode === "lone" ? "api/v1" : control.gateway(id));
    this.#instances.set(id, found);
    return found;
  }

  /** Trades the token for a one-time code and that for a cookie no script can read. The token stands in no address. */
  async login(token: string): Promise<boolean> {
    const path = this.mode === "lone" ? "api/v1/logins" : "api/logins";
    const headers = { authorization: `Bearer ${token}` };
    const made = await fetch(root + path, { method: "POST", headers }).catch(() => null);
    if (!made?.ok) return false;
    const { code } = await made.json() as { code: string };
    await fetch(`${root}?code=${encodeURIComponent(code)}`);
    this.needsLogin = false;
    await this.find();
    return !this.needsLogin;
  }
}

export const place = new Place();

import { control } from "../api/control";
import { ApiError, requestJson, rootPath, onUnauthorized } from "../api/http";
import { InstanceApi } from "../api/instance";
import { clearLogin, redeemCode } from "../api/login";
import { permissions, type Scope } from "./permissions.svelte";

/** Who serves this page: a control plane with many instances, or one instance alone. */
export type ServerMode = "detecting" | "control" | "standalone" | "unreachable";
/** The name of the only instance where there is no control plane to name it. */
export const STANDALONE_ID = "this";

/** What became of a login. */
export type LoginResult = "ok" | "wrong_token" | "failed";

/** The one-time code of the link that led here. It is taken out of the address before anybody sees it. */
let linkCode = new URLSearchParams(location.search).get("code");
if (linkCode !== null) history.replaceState(null, "", location.pathname + location.hash);

class ServerState {
  mode = $state<ServerMode>("detecting");
  needsLogin = $state(false);
  /** The link that led here was used before. */
  isLinkUsed = $state(false);
  #instances = new Map<string, InstanceApi>();

  constructor() {
    onUnauthorized(() => { this.needsLogin = true; });
  }

  /** Both say how they are to whoever asks; an instance names its store, a control plane has none to name. */
  async detect(): Promise<void> {
    await this.#redeemLink();
    const health = await fetch(`${rootPath}health`).then((answer) => answer.json() as Promise<{ store?: unknown }>).catch(() => null);
    if (health?.store) return this.#detectStandalone();
    try {
      permissions.scope = (await control.version()).scope as Scope;
      this.mode = "control";
    } catch (problem) {
      if (!(problem instanceof ApiError)) throw problem;
      if (problem.status === 404) return this.#detectStandalone();
      this.mode = problem.status === 401 ? "control" : "unreachable";
    }
  }

  async #detectStandalone() {
    // Asked first: what is shown to those who are in would open sockets.
    await requestJson("GET", "api/v1/status").catch(() => {});
    this.mode = "standalone";
  }

  instance(id: string): InstanceApi {
    const found = this.#instances.get(id) ?? new InstanceApi(id, this.mode === "standalone" ? "api/v1" : control.gatewayPath(id));
    this.#instances.set(id, found);
    return found;
  }

  /** Trades the one-time code of a link for a login, once. Where that fails, an earlier login may still be good. */
  async #redeemLink() {
    const code = linkCode;
    linkCode = null;
    if (code !== null) this.isLinkUsed = !(await redeemCode(rootPath, code));
  }

  /** Ends the login of this browser. */
  async logout() {
    await requestJson("DELETE", `${this.mode === "standalone" ? "api/v1" : "api"}/logins/current`).catch(() => {});
    clearLogin();
    location.reload();
  }

  /** Trades the token for a one-time code and that for a login. The token stands in no address. */
  async login(token: string): Promise<LoginResult> {
    const path = this.mode === "standalone" ? "api/v1/logins" : "api/logins";
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(rootPath + path, { method: "POST", headers }).catch(() => null);
    if (!response?.ok) return response?.status === 401 ? "wrong_token" : "failed";
    const { code } = await response.json() as { code: string };
    if (!(await redeemCode(rootPath, code))) return "failed";
    this.needsLogin = false;
    await this.detect();
    return this.needsLogin ? "failed" : "ok";
  }
}

export const server = new ServerState();

import { control } from "../api/control";
import { ApiError, requestJson, rootPath, onUnauthorized } from "../api/http";
import { InstanceApi } from "../api/instance";
import { clearLogin, redeemCode } from "../api/login";
import { permissions, type Scope } from "./permissions.svelte";

/** The server of this page: a control plane with many instances, or a standalone instance. */
export type ServerMode = "detecting" | "control" | "standalone" | "unreachable";
/** Id of the only instance if there is no control plane. */
export const STANDALONE_ID = "this";

/** Outcome of a login attempt. */
export type LoginResult = "ok" | "wrong_token" | "failed";

/** The one-time code of the login link. It is removed from the address immediately. */
let linkCode = new URLSearchParams(location.search).get("code");
if (linkCode !== null) history.replaceState(null, "", location.pathname + location.hash);

class ServerState {
  mode = $state<ServerMode>("detecting");
  needsLogin = $state(false);
  /** The login link was already used. */
  isLinkUsed = $state(false);
  #instances = new Map<string, InstanceApi>();

  constructor() {
    onUnauthorized(() => { this.needsLogin = true; });
  }

  /** The health page needs no login. Only an instance has the field `store` in it. */
  async detect(): Promise<void> {
    await this.#redeemLink();
    const health = await fetch(`${rootPath}health`).then((answer) => answer.json() as Promise<{ store?: unknown }>).catch(() => null);
    if (health?.store) return this.#detectStandalone();
    try {
      permissions.scope = (await control.version()).scope as Scope;
      this.mode = "control";
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 404) return this.#detectStandalone();
      this.mode = error.status === 401 ? "control" : "unreachable";
    }
  }

  async #detectStandalone() {
    // Check the login before the views open sockets.
    await requestJson("GET", "api/v1/status").catch(() => {});
    this.mode = "standalone";
  }

  instance(id: string): InstanceApi {
    const found = this.#instances.get(id) ?? new InstanceApi(id, this.mode === "standalone" ? "api/v1" : control.gatewayPath(id));
    this.#instances.set(id, found);
    return found;
  }

  /** Exchanges the code of a login link once. If that fails, an earlier login may still be valid. */
  async #redeemLink() {
    const code = linkCode;
    linkCode = null;
    if (code !== null) this.isLinkUsed = !(await redeemCode(rootPath, code));
  }

  /** Logs out this browser. */
  async logout() {
    await requestJson("DELETE", `${this.mode === "standalone" ? "api/v1" : "api"}/logins/current`).catch(() => {});
    clearLogin();
    location.reload();
  }

  /** Exchanges the token for a one-time code and the code for a login. The token never appears in an address. */
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

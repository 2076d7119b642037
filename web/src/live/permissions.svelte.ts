import { t } from "../i18n/language.svelte";

/** What a token is for; each may do what those before it may. */
export const SCOPES = ["read", "operate", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/** What whoever is logged in may do. An instance alone has one token, which may all. */
class Permissions {
  scope = $state<Scope>("admin");

  allows(needed: Scope): boolean { return SCOPES.indexOf(needed) <= SCOPES.indexOf(this.scope); }

  /** Why something is not offered; nothing where it is. */
  denialReason(needed: Scope): string | undefined { return this.allows(needed) ? undefined : t(this.scope === "read" ? "permission_denied.read" : "permission_denied.operate"); }
}

export const permissions = new Permissions();

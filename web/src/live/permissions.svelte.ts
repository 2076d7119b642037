import { t } from "../i18n/language.svelte";

/** Scopes of tokens. Each includes the ones before it. */
export const SCOPES = ["read", "operate", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/** Permissions of the current login. The only token of a standalone instance has all of them. */
class Permissions {
  scope = $state<Scope>("admin");

  allows(needed: Scope): boolean { return SCOPES.indexOf(needed) <= SCOPES.indexOf(this.scope); }

  /** Why an action is not allowed, or undefined if it is. */
  denialReason(needed: Scope): string | undefined { return this.allows(needed) ? undefined : t(this.scope === "read" ? "permission_denied.read" : "permission_denied.operate"); }
}

export const permissions = new Permissions();

import { t } from "../i18n/language.svelte";

/** What a token is for; each may do what those before it may. */
export const SCOPES = ["read", "operate", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

/** What whoever is logged in may do. An instance alone has one token, which may all. */
class Rights {
  scope = $state<Scope>("admin");

  may(needed: Scope): boolean { return SCOPES.indexOf(needed) <= SCOPES.indexOf(this.scope); }

  /** Why something is not offered; nothing where it is. */
  bar(needed: Scope): string | undefined { return this.may(needed) ? undefined : t(this.scope === "read" ? "scope_only.read" : "scope_only.operate"); }
}

export const rights = new Rights();

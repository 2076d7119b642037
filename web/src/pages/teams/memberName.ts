import { tOptional } from "../../i18n/language.svelte";

/** Somebody of a team by name; those who are no member have a word. */
export const memberName = (name: string): string => tOptional("member_name", name) ?? name;

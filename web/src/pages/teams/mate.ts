import { tMaybe } from "../../i18n/language.svelte";

/** Somebody of a team by name; those who are no member have a word. */
export const mate = (name: string): string => tMaybe("mate", name) ?? name;

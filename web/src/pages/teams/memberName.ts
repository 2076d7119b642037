import { tOptional } from "../../i18n/language.svelte";

/** Display name of a participant. Those who are not members have a translated name. */
export const memberName = (name: string): string => tOptional("member_name", name) ?? name;

import type { InstanceUsageView } from "../../api/control.types";
import { t } from "../../i18n/language.svelte";

/** What an instance took, in a word. Who was not asked yet, or cannot be while it rests, is no riddle; who was never used
    took nothing; the rest is said, or said to be unknown. */
export function usageText(used: InstanceUsageView | null | undefined, runs: boolean, known: string): string {
  if (!used || (used.message && !runs)) return t("no_value");
  if (used.message) return t("unknown");
  return used.request_count === 0 ? t("none_yet") : known;
}

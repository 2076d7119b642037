import type { InstanceUsageView } from "../../api/control.types";
import { t } from "../../i18n/language.svelte";

/** Usage of an instance as text: a dash if it is not loaded or the instance is stopped, "none yet" if it was never used,
    otherwise the value or "unknown". */
export function usageText(used: InstanceUsageView | null | undefined, runs: boolean, known: string): string {
  if (!used || (used.message && !runs)) return t("no_value");
  if (used.message) return t("unknown");
  return used.request_count === 0 ? t("none_yet") : known;
}

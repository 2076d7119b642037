import { ApiError } from "../api/http";
import { dialogStack } from "../design/dialogStack.svelte";
import { toasts } from "../design/toast.svelte";
import { currentLanguage, t } from "../i18n/language.svelte";

/** For answers that are not of ours, such as those of a proxy in between. */
function proxyErrorText(problem: ApiError): string | undefined {
  if (!problem.code.startsWith("http_")) return undefined;
  return problem.status >= 500 ? t("error.server") : t("error.refused");
}

/** An error of the API in words: ours where we have a sentence for its code, else the server's own. */
export function errorText(problem: unknown): { text: string; hint?: string } {
  if (!(problem instanceof ApiError)) return { text: t("error.unexpected") };
  const translated = (currentLanguage.messages as Record<string, string>)[`error.${problem.code}`] ?? proxyErrorText(problem);
  // A server speaks English; its sentence has the names and numbers that ours has not.
  const detail = translated && problem.message && problem.status !== 0 ? problem.message : undefined;
  const hint = [detail, currentLanguage.code === "en" || !translated ? problem.hint : null].filter(Boolean).join(" · ");
  return { text: translated ?? problem.message, hint: hint || undefined };
}

export function showError(problem: unknown) {
  if (problem instanceof ApiError && problem.status === 401) return;
  const { text, hint } = errorText(problem);
  toasts.add("error", text, hint);
}

/** Runs something a person asked for, and says in words what went wrong. Whether it went well. */
export async function runWithErrorToast(run: () => Promise<unknown>): Promise<boolean> {
  // Who tries a form again has read why it failed.
  if (dialogStack.top !== null) toasts.clearErrors(dialogStack.top);
  try {
    await run();
    return true;
  } catch (problem) {
    if (!(problem instanceof ApiError)) console.error(problem);
    showError(problem);
    return false;
  }
}

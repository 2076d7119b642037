import { ApiError } from "../api/http";
import { dialogStack } from "../design/dialogStack.svelte";
import { toasts } from "../design/toast.svelte";
import { currentLanguage, t } from "../i18n/language.svelte";

/** Text for responses that are not from Polyclaw, such as those of a proxy. */
function proxyErrorText(error: ApiError): string | undefined {
  if (!error.code.startsWith("http_")) return undefined;
  return error.status >= 500 ? t("error.server") : t("error.refused");
}

/** Text of an API error: the translation of its code, or else the server's message. */
export function errorText(error: unknown): { text: string; hint?: string } {
  if (!(error instanceof ApiError)) return { text: t("error.unexpected") };
  const translated = (currentLanguage.messages as Record<string, string>)[`error.${error.code}`] ?? proxyErrorText(error);
  // The server's message is in English, but it contains names and numbers.
  const detail = translated && error.message && error.status !== 0 ? error.message : undefined;
  const hint = [detail, currentLanguage.code === "en" || !translated ? error.hint : null].filter(Boolean).join(" · ");
  return { text: translated ?? error.message, hint: hint || undefined };
}

export function showError(error: unknown) {
  if (error instanceof ApiError && error.status === 401) return;
  const { text, hint } = errorText(error);
  toasts.add("error", text, hint);
}

/** Runs an action of the user and shows errors as a toast. Returns whether the action succeeded. */
export async function runWithErrorToast(run: () => Promise<unknown>): Promise<boolean> {
  // A retry removes the error of the previous attempt.
  if (dialogStack.top !== null) toasts.clearErrors(dialogStack.top);
  try {
    await run();
    return true;
  } catch (error) {
    if (!(error instanceof ApiError)) console.error(error);
    showError(error);
    return false;
  }
}

import { Problem } from "../api/http";
import { layers } from "../design/layer.svelte";
import { toasts } from "../design/toast.svelte";
import { spoken, t } from "../i18n/language.svelte";

/** For answers that are not of ours, such as those of a proxy in between. */
function plain(problem: Problem): string | undefined {
  if (!problem.code.startsWith("http_")) return undefined;
  return problem.status >= 500 ? t("error.server") : t("error.refused");
}

/** An error of the API in words: ours where we have a sentence for its code, else the server's own. */
export function sentence(problem: unknown): { text: string; hint?: string } {
  if (!(problem instanceof Problem)) return { text: t("error.unexpected") };
  const ours = (spoken.words as Record<string, string>)[`error.${problem.code}`] ?? plain(problem);
  // A server speaks English; its sentence has the names and numbers that ours has not.
  const detail = ours && problem.message && problem.status !== 0 ? problem.message : undefined;
  const hint = [detail, spoken.name === "en" || !ours ? problem.hint : null].filter(Boolean).join(" · ");
  return { text: ours ?? problem.message, hint: hint || undefined };
}

export function complain(problem: unknown) {
  if (problem instanceof Problem && problem.status === 401) return;
  const { text, hint } = sentence(problem);
  toasts.add("bad", text, hint);
}

/** Runs something a person asked for, and says in words what went wrong. Whether it went well. */
export async function attempt(run: () => Promise<unknown>): Promise<boolean> {
  // Who tries a form again has read why it failed.
  if (layers.top !== null) toasts.forget(layers.top);
  try {
    await run();
    return true;
  } catch (problem) {
    if (!(problem instanceof Problem)) console.error(problem);
    complain(problem);
    return false;
  }
}

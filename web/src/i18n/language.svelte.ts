import en from "./en.json";

/** English is always here; others come when they are asked for. */
export type MessageKey = keyof typeof en;
export type Language = "en" | "zh";
type Messages = Record<MessageKey, string>;

const STORAGE_KEY = "polyclaw.language";
const loaders: Record<Language, () => Promise<Messages>> = {
  en: async () => en,
  zh: async () => (await import("./zh.json")).default,
};

class LanguageState {
  code = $state<Language>("en");
  messages = $state.raw<Messages>(en);

  async load(code: Language) {
    this.messages = await loaders[code]();
    this.code = code;
    document.documentElement.lang = code;
  }

  /** Shows a language that somebody chose, and remembers it. */
  async select(code: Language) {
    await this.load(code);
    localStorage.setItem(STORAGE_KEY, code);
  }
}

export const currentLanguage = new LanguageState();

/** What the person chose, else what their browser speaks. */
export async function startLanguage() {
  const stored = localStorage.getItem(STORAGE_KEY);
  const preferred = stored ?? (/^zh/i.test(navigator.language) ? "zh" : "en");
  await currentLanguage.load(preferred === "zh" ? "zh" : "en");
}

/** One of something may have a sentence of its own, whose name ends in `_one`. */
export function t(key: MessageKey, values: Record<string, string | number> = {}): string {
  const one = values.n === 1 || values.n === "1" ? (currentLanguage.messages as Record<string, string>)[`${key}_one`] : undefined;
  const text = one ?? currentLanguage.messages[key] ?? en[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** A sentence that there may be, of something that the server names. */
export const tOptional = (group: string, name: string): string | undefined => (currentLanguage.messages as Record<string, string>)[`${group}.${name}`];

/** For words that come from the server, such as a status: ours if we have one, else theirs. */
export function tValue(group: string, word: string | null | undefined): string {
  if (!word) return "";
  return tOptional(group, word) ?? word.replaceAll("_", " ");
}

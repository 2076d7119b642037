import en from "./en.json";

/** English is always loaded; other languages are loaded on demand. */
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

  /** Loads the language that the user selected, and stores the selection. */
  async select(code: Language) {
    await this.load(code);
    localStorage.setItem(STORAGE_KEY, code);
  }
}

export const currentLanguage = new LanguageState();

/** Loads the selected language, or else the browser's. */
export async function startLanguage() {
  const stored = localStorage.getItem(STORAGE_KEY);
  const preferred = stored ?? (/^zh/i.test(navigator.language) ? "zh" : "en");
  await currentLanguage.load(preferred === "zh" ? "zh" : "en");
}

/** Translates a key. If `values.n` is 1, the key with the suffix `_one` is preferred. */
export function t(key: MessageKey, values: Record<string, string | number> = {}): string {
  const one = values.n === 1 || values.n === "1" ? (currentLanguage.messages as Record<string, string>)[`${key}_one`] : undefined;
  const text = one ?? currentLanguage.messages[key] ?? en[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** The translation of a name that the server sends, if there is one. */
export const tOptional = (group: string, name: string): string | undefined => (currentLanguage.messages as Record<string, string>)[`${group}.${name}`];

/** The translation of a word that the server sends, such as a status, or else the word itself. */
export function tValue(group: string, word: string | null | undefined): string {
  if (!word) return "";
  return tOptional(group, word) ?? word.replaceAll("_", " ");
}

import en from "./en.json";

/** English is always here; others come when they are asked for. */
export type Key = keyof typeof en;
export type Language = "en" | "zh";
type Words = Record<Key, string>;

const STORED = "polyclaw.language";
const loaders: Record<Language, () => Promise<Words>> = {
  en: async () => en,
  zh: async () => (await import("./zh.json")).default,
};

class Spoken {
  name = $state<Language>("en");
  words = $state.raw<Words>(en);

  async show(name: Language) {
    this.words = await loaders[name]();
    this.name = name;
    document.documentElement.lang = name;
  }

  /** Shows a language that somebody chose, and remembers it. */
  async use(name: Language) {
    await this.show(name);
    localStorage.setItem(STORED, name);
  }
}

export const spoken = new Spoken();

/** What the person chose, else what their browser speaks. */
export async function startLanguage() {
  const stored = localStorage.getItem(STORED);
  const wanted = stored ?? (/^zh/i.test(navigator.language) ? "zh" : "en");
  await spoken.show(wanted === "zh" ? "zh" : "en");
}

/** One of something may have a sentence of its own, whose name ends in `_one`. */
export function t(key: Key, values: Record<string, string | number> = {}): string {
  const one = values.n === 1 || values.n === "1" ? (spoken.words as Record<string, string>)[`${key}_one`] : undefined;
  const text = one ?? spoken.words[key] ?? en[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** A sentence that there may be, of something that the server names. */
export const tMaybe = (group: string, name: string): string | undefined => (spoken.words as Record<string, string>)[`${group}.${name}`];

/** For words that come from the server, such as a status: ours if we have one, else theirs. */
export function tWord(group: string, word: string | null | undefined): string {
  if (!word) return "";
  return tMaybe(group, word) ?? word.replaceAll("_", " ");
}

/** Characters that change the text direction or are invisible, and control characters except tabs and line breaks. */
const HIDDEN_CHARACTERS = /(?![\n\t])[\p{Cc}\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}\u{e0100}-\u{e01ef}]/gu;

/** Replaces hidden characters with text such as `<U+202E>`, so that people approve exactly what they read. */
export const escapeHiddenCharacters = (text: string): string => text.replaceAll("\r\n", "\n").replace(HIDDEN_CHARACTERS, (one) => `<U+${(one.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`);

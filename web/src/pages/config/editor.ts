import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { HighlightStyle, StreamLanguage, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { ConfigErrorView } from "../../api/control.types";

const highlightColors = HighlightStyle.define([
  { tag: tags.comment, color: "var(--foreground-subtle)", fontStyle: "italic" },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--brand)" },
  { tag: [tags.number, tags.bool, tags.atom], color: "var(--info)" },
  { tag: [tags.heading, tags.tagName], color: "var(--foreground)", fontWeight: "bold" },
]);

const editorTheme = EditorView.theme({
  "&": { height: "100%", fontSize: "13px", color: "var(--foreground)", backgroundColor: "transparent" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--font-mono)", lineHeight: "1.65" },
  ".cm-content": { caretColor: "var(--foreground)" },
  ".cm-cursor": { borderLeftColor: "var(--foreground)" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--foreground-subtle)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--surface-sunken)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--accent-soft)" },
  ".cm-tooltip, .cm-panels": { backgroundColor: "var(--surface)", color: "var(--foreground)", border: "1px solid var(--border)" },
});

export interface Editor { getText: () => string; setText: (text: string) => void; showErrors: (errors: ConfigErrorView[]) => void; destroy: () => void }

/** Creates the editor in a shadow tree. There its styles are style sheets, which the page's policy allows. */
export function createEditor(host: HTMLElement, text: string, words: { label: string; keys: string }, onChange: (text: string) => void): Editor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const view = new EditorView({
    root, parent: root,
    state: EditorState.create({ doc: text, extensions: [
      lineNumbers(), history(), drawSelection(), bracketMatching(), highlightActiveLine(), highlightSelectionMatches(), lintGutter(),
      StreamLanguage.define(toml), syntaxHighlighting(highlightColors), editorTheme,
      EditorView.contentAttributes.of({ tabindex: "0", "aria-label": words.label, "aria-description": words.keys, spellcheck: "false" }),
      keymap.of([...defaultKeymap, ...historyKeymap, ...searchKeymap, indentWithTab]),
      EditorView.updateListener.of((update) => { if (update.docChanged) onChange(update.state.doc.toString()); }),
    ] }),
  });
  return {
    getText: () => view.state.doc.toString(),
    setText: (next) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    showErrors: (errors) => view.dispatch(setDiagnostics(view.state, errors.filter((one) => one.line).map((one) => {
      const line = view.state.doc.line(Math.min(one.line as number, view.state.doc.lines));
      return { from: line.from, to: line.to, severity: "error" as const, message: one.message };
    }))),
    destroy: () => view.destroy(),
  };
}

// SPDX-License-Identifier: Apache-2.0
// CodeMirror in the notebook's colors: each is a variable of the theme, so a switch of themes repaints by itself.
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const accent = (percent: number): string => `color-mix(in srgb, var(--tk-accent) ${percent}%, transparent)`;

const look = EditorView.theme({
  "&": { backgroundColor: "transparent", color: "var(--jp-mirror-editor-variable-color, var(--tk-ink))" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { overflow: "auto", fontFamily: "var(--tk-mono)", lineHeight: "18px" },
  ".cm-content": { padding: "6px 0", caretColor: "var(--jp-editor-cursor-color, var(--tk-ink))" },
  ".cm-line": { padding: "0 10px 0 6px" },
  ".cm-gutters": { backgroundColor: "var(--tk-page)", color: "var(--tk-dim)", border: "none" },
  ".cm-lineNumbers .cm-gutterElement": { minWidth: "34px", padding: "0 6px 0 2px" },
  ".cm-foldGutter .cm-gutterElement": { width: "12px", color: "var(--tk-faint)", cursor: "pointer" },
  ".cm-gutter-lint": { width: "18px" },
  ".cm-gutter-lint .cm-gutterElement": { padding: "0 3px" },
  ".cm-lint-marker": { width: "11px", height: "11px", marginTop: "3.5px" },
  ".cm-lint-marker-error": { content: "none", borderRadius: "50%", backgroundColor: "var(--tk-del-ink)" },
  ".cm-lint-marker-warning": { content: "none", backgroundColor: "var(--tk-warn-ink)", clipPath: "polygon(50% 8%, 100% 95%, 0 95%)" },
  ".cm-lint-marker-info": { content: "none", borderRadius: "3px", backgroundColor: "var(--tk-accent)" },
  ".cm-lintRange-error, .cm-lintRange-warning, .cm-lintRange-info": {
    backgroundImage: "none",
    textDecoration: "underline wavy 1px",
    textUnderlineOffset: "3px",
    paddingBottom: "0",
  },
  ".cm-lintRange-error": { textDecorationColor: "var(--tk-del-ink)" },
  ".cm-lintRange-warning": { textDecorationColor: "var(--tk-warn-ink)" },
  ".cm-lintRange-info": { textDecorationColor: "var(--tk-accent)" },
  ".cm-activeLine": { backgroundColor: accent(7) },
  ".cm-activeLineGutter": { backgroundColor: accent(7), color: "var(--tk-ink)" },
  "&.cm-focused .cm-cursor": { borderLeftColor: "var(--jp-editor-cursor-color, var(--tk-ink))" },
  "& > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { background: accent(22) },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { background: accent(28) },
  ".cm-selectionMatch": { backgroundColor: accent(16) },
  ".cm-searchMatch": { backgroundColor: "var(--tk-warn)", outline: "1px solid color-mix(in srgb, var(--tk-warn-ink) 40%, transparent)" },
  ".cm-searchMatch.cm-searchMatch-selected": { backgroundColor: accent(35) },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: accent(20), outline: `1px solid ${accent(45)}` },
  "&.cm-focused .cm-nonmatchingBracket": { backgroundColor: "var(--tk-del)" },
  ".cm-foldPlaceholder": { padding: "0 6px", border: "1px solid var(--tk-line)", backgroundColor: "var(--tk-band)", color: "var(--tk-dim)" },
  ".cm-panels": { zIndex: "2", backgroundColor: "var(--tk-band)", color: "var(--tk-ink)" },
  ".cm-panels-top": { borderBottom: "1px solid var(--tk-line)" },
  ".cm-panel.cm-search": { padding: "5px 26px 5px 8px", font: "12px var(--tk-ui)" },
  ".cm-panel.cm-search label": {
    display: "inline-flex",
    alignItems: "center",
    gap: "4px",
    verticalAlign: "middle",
    color: "var(--tk-dim)",
    fontSize: "12px",
  },
  ".cm-panel.cm-search label input": { margin: "0" },
  ".cm-panel.cm-search [name=close]": { top: "4px", right: "6px", color: "var(--tk-dim)", fontSize: "16px" },
  ".cm-textfield": {
    height: "24px",
    border: "1px solid var(--tk-line)",
    borderRadius: "5px",
    backgroundColor: "var(--tk-page)",
    font: "12px var(--tk-ui)",
  },
  ".cm-button": {
    height: "24px",
    border: "1px solid var(--tk-line)",
    borderRadius: "5px",
    background: "var(--tk-page)",
    color: "var(--tk-ink)",
    fontSize: "12px",
  },
  ".cm-tooltip": { border: "1px solid var(--tk-line)", borderRadius: "5px", backgroundColor: "var(--tk-page)", color: "var(--tk-ink)" },
  ".cm-diagnostic": { padding: "4px 8px", fontFamily: "var(--tk-ui)", fontSize: "12px" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--tk-del-ink)" },
  ".cm-diagnostic-warning": { borderLeft: "3px solid var(--tk-warn-ink)" },
  ".cm-diagnostic-info": { borderLeft: "3px solid var(--tk-accent)" },
});

const colors = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--tk-code-keyword)", fontWeight: "600" },
  { tag: tags.comment, color: "var(--tk-code-comment)", fontStyle: "italic" },
  { tag: [tags.string, tags.character], color: "var(--tk-code-string)" },
  { tag: [tags.number, tags.bool], color: "var(--tk-code-number)" },
  { tag: [tags.typeName, tags.standard(tags.name)], color: "var(--tk-code-builtin)" },
  { tag: tags.operator, color: "var(--tk-code-operator)" },
  { tag: [tags.function(tags.variableName), tags.function(tags.definition(tags.variableName))], color: "var(--tk-code-def)" },
  { tag: [tags.processingInstruction, tags.meta], color: "var(--tk-code-meta)" },
]);

export const theme = [look, syntaxHighlighting(colors)];

// SPDX-License-Identifier: Apache-2.0
// One row of a diff as an element of the page.
import { el, plural } from "../common/dom.ts";
import { makeFocusable } from "../common/keyboard.ts";
import { type Span, spans } from "../common/textdiff.ts";
import { pieces } from "./code.ts";
import { Show } from "./diffalign.ts";
import { differByNames } from "./diffhead.ts";
import type { DiffText, Layout, Place, Row, Side } from "./difftext.ts";

/** What a row is shown with besides its texts. */
interface Dress {
  layout: Layout;
  /** What was searched for, in the row where it was found. */
  needle: string;
  isPinned: boolean;
  /** Whether there is but one text. */
  isSingle: boolean;
  /** What is said beside a line, such as which pass made it, where anything is. */
  note: ((place: Place) => string) | undefined;
  isLit(place: Place): boolean;
}

interface Look {
  style: string;
  sign: string;
  spoken: string;
}

const PLAIN: Look = { style: "", sign: "", spoken: "" };
const LOOKS: Partial<Record<Show, Look>> = {
  [Show.Indented]: { style: "tk-indented", sign: "~", spoken: "re-indented" },
  [Show.Renamed]: { style: "tk-renamed", sign: "≈", spoken: "renamed" },
};
const REMOVED: Look = { style: "tk-removed", sign: "−", spoken: "removed" };
const ADDED: Look = { style: "tk-added", sign: "+", spoken: "added" };

export function rowElement(row: Row, text: DiffText, dress: Dress): HTMLElement {
  if (row.show === Show.Fold) return foldRow(row);
  const { before, after } = text.texts;
  const isPair = row.show === Show.Edited || row.show === Show.Indented || row.show === Show.Renamed;
  const [old, now] = isPair ? spans(before[row.left]!, after[row.right]!) : [[], []];
  const cells =
    dress.layout === "unified" && !text.texts.isTranslation
      ? unifiedCells(row, text, dress, row.shows === "left" ? old : now)
      : [...splitCells("left", row, text, dress, old), ...(dress.isSingle ? [] : splitCells("right", row, text, dress, now))];
  const classes = ["tk-row", dress.needle ? "tk-found" : "", dress.isPinned ? "tk-pinned" : ""];
  return el("div", classes.filter(Boolean).join(" "), cells, { role: "row" });
}

function foldRow(row: Row): HTMLElement {
  const unchanged = row.hidden - row.renamed;
  const words = [
    ...(unchanged ? [plural(unchanged, "unchanged line")] : []),
    ...(row.renamed ? [differByNames(row.renamed)] : []),
  ].join(", ");
  const end = (name: "top" | "bottom", sign: string): HTMLElement => {
    const label = name === "top" ? "Show 20 more lines below those above" : "Show 20 more lines above those below";
    const button = el("button", "tk-fold-end", [sign], { type: "button", "data-end": name, "aria-label": label, title: label });
    makeFocusable(button, -1);
    return button;
  };
  const all = el("span", "tk-fold-words", [words], { role: "cell", title: "Show these lines" });
  return el("div", "tk-fold", [el("span", "tk-fold-ends", [end("top", "↓"), end("bottom", "↑")], { role: "cell" }), all], { role: "row" });
}

function splitCells(side: Side, row: Row, text: DiffText, dress: Dress, marked: Span[]): HTMLElement[] {
  const line = row[side];
  const note = side === "right" ? noteCell(row, line < 0 ? "left" : "right", dress) : [];
  if (line < 0) return [...note, el("span", "tk-number tk-void"), el("span", "tk-sign tk-void"), el("code", "tk-void", [], { role: "cell" })];
  const look = lookOf(side, row, text);
  return [...note, numberCell(line, look, side), signCell(look), codeCell({ side, line }, look, text, dress, marked)];
}

function unifiedCells(row: Row, text: DiffText, dress: Dress, marked: Span[]): HTMLElement[] {
  const side: Side = row.shows === "left" ? "left" : "right";
  const look = lookOf(side, row, text);
  const number = (of: Side): HTMLElement =>
    row.shows === "both" || row.shows === of ? numberCell(row[of], look, of) : el("span", `tk-number ${look.style}`);
  return [...noteCell(row, side, dress), number("left"), number("right"), signCell(look), codeCell({ side, line: row[side] }, look, text, dress, marked)];
}

function lookOf(side: Side, row: Row, text: DiffText): Look {
  const own = LOOKS[row.show];
  if (own) return own;
  if (row.show === Show.Same || row.show === Show.Beside) return PLAIN;
  const look = side === "left" ? REMOVED : ADDED;
  return text.moveAt({ side, line: row[side] }) ? { style: `${look.style} tk-moved`, sign: look.sign, spoken: "moved" } : look;
}

function noteCell(row: Row, side: Side, { note }: Dress): HTMLElement[] {
  const words = note?.({ side, line: row[side] });
  return note ? [words ? small("tk-note", words, {}) : el("span", "tk-note")] : [];
}

const numberCell = (line: number, { style }: Look, side: Side): HTMLElement =>
  el("span", `tk-number ${style}`.trim(), [String(line + 1)], { role: "rowheader", "data-side": side });

function signCell({ style, sign, spoken }: Look): HTMLElement {
  return el("span", `tk-sign ${style}`.trim(), [sign], { role: "cell", ...(spoken ? { "aria-label": spoken } : {}) });
}

function codeCell(place: Place, { style }: Look, text: DiffText, dress: Dress, marked: Span[]): HTMLElement {
  const code = el("span", "tk-code", pieces(text.line(place), text.languageOf(place.side), marked, dress.needle));
  const move = text.moveAt(place);
  const other = place.side === "left" ? "right" : "left";
  const link = move && move[place.side] === place.line ? [moveLink(move.count, { side: other, line: move[other] })] : [];
  return el("code", `${style}${dress.isLit(place) ? " tk-lit" : ""}`.trim(), [code, ...link], { role: "cell", "data-side": place.side });
}

function moveLink(count: number, to: Place): HTMLElement {
  const lines = plural(count, "line");
  const words = to.side === "right" ? `→ ${lines} moved to line ${to.line + 1}` : `← ${lines} moved from line ${to.line + 1}`;
  return small("tk-move-link", words, { "data-side": to.side, "data-line": String(to.line) });
}

function small(style: string, label: string, attributes: Record<string, string>): HTMLElement {
  const element = el("button", style, [label], { type: "button", title: "Go there", ...attributes });
  makeFocusable(element, -1);
  return element;
}

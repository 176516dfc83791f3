// SPDX-License-Identifier: Apache-2.0
// A line of code as it stands in the page: with its colors, what is marked in it, and what was looked for.
import { el } from "../common/dom.ts";
import { type Language, tokens } from "../common/syntax.ts";
import type { Span } from "../common/textdiff.ts";

/** The text cut where its color or its mark changes. */
export function pieces(text: string, language: Language, marked: readonly Span[] = [], needle = ""): (Node | string)[] {
  const at = needle ? text.toLowerCase().indexOf(needle.toLowerCase()) : -1;
  const hits: Piece[] = at < 0 ? [] : [{ start: at, stop: at + needle.length, style: "tk-hit" }];
  const marks: Piece[] = marked.map(([start, stop]) => ({ start, stop, style: "" }));
  const colors: Piece[] = tokens(text, language);
  const ends = [...hits, ...marks, ...colors].flatMap(({ start, stop }) => [start, stop]);
  const cuts = [...new Set([0, text.length, ...ends])].sort((a, b) => a - b);
  const [hitAt, markAt, colorAt] = [hits, marks, colors].map(pieceAt) as [Finder, Finder, Finder];
  const result: (Node | string)[] = [];
  let mark: { node: HTMLElement; of: Piece } | undefined;
  for (let n = 0; n + 1 < cuts.length; n++) {
    const [start, stop] = [cuts[n]!, cuts[n + 1]!];
    const marking = hitAt(start) ?? markAt(start);
    const coloring = colorAt(start);
    const part = text.slice(start, stop);
    const node = coloring ? el("i", coloring.style, [part]) : part;
    if (!marking) {
      mark = undefined;
      result.push(node);
    } else if (mark?.of === marking) {
      mark.node.append(node);
    } else {
      mark = { node: el("mark", marking.style, [node]), of: marking };
      result.push(mark.node);
    }
  }
  return result;
}

interface Piece {
  start: number;
  stop: number;
  style: string;
}
type Finder = (column: number) => Piece | undefined;

/** Finds the piece over a column, for columns that only go up. */
function pieceAt(all: Piece[]): Finder {
  let at = 0;
  return (column) => {
    while (at < all.length && all[at]!.stop <= column) at++;
    const piece = all[at];
    return piece && piece.start <= column ? piece : undefined;
  };
}

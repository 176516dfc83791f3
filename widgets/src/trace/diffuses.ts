// SPDX-License-Identifier: Apache-2.0
// Marks all uses of a name in the rows that are in the page, without touching their elements.
import { type Language, names } from "../common/syntax.ts";

const KEY = "tk-uses";

/** A line in the page. */
export interface ShownLine {
  code: HTMLElement;
  text: string;
  language: Language;
}

export class Uses {
  name = "";
  #ranges: Range[] = [];

  mark(lines: Iterable<ShownLine>): void {
    this.clear();
    if (!this.name) return;
    const highlight = CSS.highlights.get(KEY) ?? new Highlight();
    CSS.highlights.set(KEY, highlight);
    for (const { code, text, language } of lines) {
      if (!text.includes(this.name)) continue;
      for (const { start, stop, text: name } of names(text, language)) {
        if (name === this.name) this.#ranges.push(rangeOf(code, start, stop));
      }
    }
    this.#ranges.forEach((range) => highlight.add(range));
  }

  clear(): void {
    const highlight = CSS.highlights.get(KEY);
    this.#ranges.forEach((range) => highlight?.delete(range));
    this.#ranges = [];
  }
}

export function rangeOf(code: HTMLElement, start: number, stop: number): Range {
  const range = document.createRange();
  const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
  let at = 0;
  let isBegun = false;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const end = at + node.textContent!.length;
    if (!isBegun && start < end) {
      range.setStart(node, start - at);
      isBegun = true;
    }
    if (stop <= end) {
      range.setEnd(node, stop - at);
      break;
    }
    at = end;
  }
  return range;
}

/** The name under the pointer. */
export function nameAt({ code, text, language }: ShownLine, x: number, y: number): string {
  const caret = document.caretPositionFromPoint(x, y);
  if (!caret || !code.contains(caret.offsetNode)) return "";
  const before = document.createRange();
  before.setStart(code, 0);
  before.setEnd(caret.offsetNode, caret.offset);
  const column = before.toString().length;
  const found = names(text, language).find(({ start, stop }) => start <= column && column <= stop);
  if (!found) return "";
  const { left, right } = rangeOf(code, found.start, found.stop).getBoundingClientRect();
  return left <= x && x <= right ? found.text : "";
}

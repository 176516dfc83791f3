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

  mark(lines: () => ShownLine[]): void {
    this.clear();
    // browsers of before 2025 may not know how to mark what is no element
    if (!this.name || !("highlights" in CSS)) return;
    const highlight = CSS.highlights.get(KEY) ?? new Highlight();
    CSS.highlights.set(KEY, highlight);
    for (const { code, text, language } of lines()) {
      if (!text.includes(this.name)) continue;
      for (const { start, stop, text: name } of names(text, language)) {
        if (name === this.name) this.#ranges.push(rangeOf(code, start, stop));
      }
    }
    this.#ranges.forEach((range) => highlight.add(range));
  }

  clear(): void {
    if (!this.#ranges.length) return;
    const highlight = CSS.highlights.get(KEY);
    this.#ranges.forEach((range) => highlight?.delete(range));
    this.#ranges = [];
  }
}

function rangeOf(code: HTMLElement, start: number, stop: number): Range {
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

/** The name at a place of the page. */
export function nameAt({ code, text, language }: ShownLine, x: number): string {
  const found = names(text, language).find(({ start, stop }) => {
    const { left, right } = rangeOf(code, start, stop).getBoundingClientRect();
    return left <= x && x <= right;
  });
  return found?.text ?? "";
}

// SPDX-License-Identifier: Apache-2.0
// Marks all uses of a name in the rows that are in the page, without touching their elements: of the name under the
// pointer, else of the one that was chosen.
import { type Language, names } from "../common/syntax.ts";
import type { Side } from "./difftext.ts";

const KEY = "tk-uses";
const CODE = "code[data-side] > .tk-code";

/** A line in the page. */
interface ShownLine {
  code: HTMLElement;
  text: string;
  language: Language;
}

export class Uses {
  #chosen = "";
  #marked = "";
  #ranges: Range[] = [];

  constructor(
    private readonly viewport: HTMLElement,
    private readonly languageOf: (side: Side) => Language,
    signal: AbortSignal,
  ) {
    const hover = ({ buttons, target, clientX }: MouseEvent): void => this.#turnTo((!buttons && this.at(target as HTMLElement, clientX)) || this.#chosen);
    viewport.addEventListener("mousemove", hover, { passive: true, signal });
    viewport.addEventListener("mouseleave", () => this.#turnTo(this.#chosen), { passive: true, signal });
    signal.addEventListener("abort", () => this.#clear());
  }

  /** The name whose uses stay marked where the pointer is on none. */
  get chosen(): string {
    return this.#chosen;
  }

  set chosen(name: string) {
    this.#chosen = name;
    this.#turnTo(name);
  }

  /** The name at a place of the page. */
  at(target: HTMLElement, x: number): string {
    const code = target.closest("code[data-side]")?.querySelector<HTMLElement>(".tk-code");
    return code ? nameAt(this.#shown(code), x) : "";
  }

  #turnTo(name: string): void {
    if (name === this.#marked) return;
    this.#marked = name;
    this.mark();
  }

  /** Mark them in the rows that are in the page now. */
  mark(): void {
    this.#clear();
    // browsers of before 2025 may not know how to mark what is no element
    if (!this.#marked || !("highlights" in CSS)) return;
    const highlight = CSS.highlights.get(KEY) ?? new Highlight();
    CSS.highlights.set(KEY, highlight);
    for (const code of this.viewport.querySelectorAll<HTMLElement>(CODE)) {
      const { text, language } = this.#shown(code);
      if (!text.includes(this.#marked)) continue;
      for (const { start, stop, text: name } of names(text, language)) {
        if (name === this.#marked) this.#ranges.push(rangeOf(code, start, stop));
      }
    }
    this.#ranges.forEach((range) => highlight.add(range));
  }

  #shown(code: HTMLElement): ShownLine {
    return { code, text: code.textContent!, language: this.languageOf(code.parentElement!.dataset.side as Side) };
  }

  #clear(): void {
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

function nameAt({ code, text, language }: ShownLine, x: number): string {
  const found = names(text, language).find(({ start, stop }) => {
    const { left, right } = rangeOf(code, start, stop).getBoundingClientRect();
    return left <= x && x <= right;
  });
  return found?.text ?? "";
}

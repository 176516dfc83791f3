// SPDX-License-Identifier: Apache-2.0
// The list at the side.
import { el } from "../common/dom.ts";
import { makeFocusable } from "../common/keyboard.ts";
import { LiveRows } from "./live.ts";

const ROW = 24;

/** A row: what it shows, and where it leads; a heading leads nowhere. */
export interface Row {
  key: string;
  draw: () => HTMLElement;
}

export class List {
  readonly element = el("div", "tk-list", [], { role: "listbox", "aria-label": "Passes" });
  readonly #pad = el("div", "tk-list-pad", [], { role: "presentation" });
  readonly #live = new LiveRows(this.#pad, (index) => this.#draw(index));
  #rows: readonly Row[] = [];
  #selected = "";

  constructor(
    private readonly id: string,
    onSelect: (key: string) => void,
    signal: AbortSignal,
  ) {
    makeFocusable(this.element);
    this.element.append(this.#pad);
    this.element.addEventListener("scroll", () => this.#paint(), { passive: true, signal });
    this.element.addEventListener("click", (event) => {
      const key = (event.target as HTMLElement).closest<HTMLElement>("[data-key]")?.dataset.key;
      if (key) onSelect(key);
    });
    const observer = new ResizeObserver(() => this.#paint());
    observer.observe(this.element);
    signal.addEventListener("abort", () => observer.disconnect());
  }

  show(rows: readonly Row[]): void {
    this.#rows = rows;
    this.#pad.style.height = `${rows.length * ROW}px`;
    this.#live.clear();
    this.#paint();
  }

  /** Mark a row and bring it into view; only the list scrolls, never the notebook. */
  select(key: string): void {
    this.#selected = key;
    const at = this.#rows.findIndex((row) => row.key === key);
    if (at >= 0) {
      const { scrollTop, clientHeight } = this.element;
      if (at * ROW < scrollTop) this.element.scrollTop = (at - 1) * ROW;
      else if ((at + 1) * ROW > scrollTop + clientHeight) this.element.scrollTop = (at + 3) * ROW - clientHeight;
    }
    this.#paint();
    for (const [index, node] of this.#live.nodes) this.#mark(index, node);
    const active = this.#live.nodes.get(at);
    if (active) this.element.setAttribute("aria-activedescendant", active.id);
    else this.element.removeAttribute("aria-activedescendant");
  }

  #paint(): void {
    const { scrollTop, clientHeight } = this.element;
    this.#live.keep(Math.floor(scrollTop / ROW), Math.ceil((scrollTop + clientHeight) / ROW), this.#rows.length);
  }

  #draw(index: number): HTMLElement {
    const row = this.#rows[index]!;
    const node = row.draw();
    node.style.top = `${index * ROW}px`;
    if (row.key) {
      node.dataset.key = row.key;
      node.id = `${this.id}-${index}`;
      node.setAttribute("aria-posinset", String(index + 1));
      node.setAttribute("aria-setsize", String(this.#rows.length));
    }
    this.#mark(index, node);
    return node;
  }

  #mark(index: number, node: HTMLElement): void {
    const { key } = this.#rows[index]!;
    if (key) node.setAttribute("aria-selected", String(key === this.#selected));
  }
}

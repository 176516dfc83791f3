// SPDX-License-Identifier: Apache-2.0
// The list at the side.
import { Listbox } from "./listbox.ts";

const ROW = 24;

/** A row: what it shows, and where it leads; a heading leads nowhere. */
export interface Row {
  key: string;
  draw: () => HTMLElement;
}

export class List {
  readonly #box: Listbox;
  #rows: readonly Row[] = [];
  #selected = "";

  constructor(onSelect: (key: string) => void, signal: AbortSignal) {
    this.#box = new Listbox("tk-list", "Passes", ROW, (index) => this.#draw(index), signal);
    this.element.addEventListener("click", (event) => {
      const key = (event.target as HTMLElement).closest<HTMLElement>("[data-key]")?.dataset.key;
      if (key) onSelect(key);
    });
  }

  get element(): HTMLElement {
    return this.#box.element;
  }

  show(rows: readonly Row[]): void {
    this.#rows = rows;
    this.#box.lay(rows.length);
  }

  /** Mark a row and bring it into view. */
  select(key: string): void {
    this.#selected = key;
    const at = this.#rows.findIndex((row) => row.key === key);
    this.#box.reveal(at);
    this.#box.nodes.forEach((node, index) => this.#mark(index, node));
    this.#box.activate(at);
  }

  #draw(index: number): HTMLElement {
    const { key, draw } = this.#rows[index]!;
    const node = draw();
    if (key) {
      const options = this.#rows.filter((row) => row.key);
      node.dataset.key = key;
      node.setAttribute("aria-posinset", String(options.indexOf(this.#rows[index]!) + 1));
      node.setAttribute("aria-setsize", String(options.length));
    }
    this.#mark(index, node);
    return node;
  }

  #mark(index: number, node: HTMLElement): void {
    const { key } = this.#rows[index]!;
    if (key) node.setAttribute("aria-selected", String(key === this.#selected));
  }
}

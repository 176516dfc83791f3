// SPDX-License-Identifier: Apache-2.0
// Many lines of one height to choose from, of which only those in view are in the page.
import { el } from "../common/dom.ts";
import { makeFocusable } from "../common/keyboard.ts";
import { activate, LiveRows, onView } from "./live.ts";

export class Listbox {
  readonly element: HTMLElement;
  readonly pad: HTMLElement;
  readonly #live: LiveRows;
  #count = 0;

  constructor(
    style: string,
    name: string,
    /** How high a line is. */
    private readonly row: number,
    draw: (index: number) => HTMLElement,
    signal: AbortSignal,
  ) {
    this.pad = el("div", `${style}-pad`, [], { role: "presentation" });
    this.element = el("div", style, [this.pad], { role: "listbox", "aria-label": name });
    this.#live = new LiveRows(this.pad, (index) => {
      const node = draw(index);
      node.style.top = `${index * row}px`;
      return node;
    });
    makeFocusable(this.element);
    const paint = (): void => this.paint();
    onView(this.element, paint, paint, signal);
  }

  /** The lines that are in the page, by their places among all. */
  get nodes(): ReadonlyMap<number, HTMLElement> {
    return this.#live.nodes;
  }

  /** Other lines, so many. */
  lay(count: number): void {
    this.#count = count;
    this.pad.style.height = `${count * this.row}px`;
    this.#live.clear();
    this.paint();
  }

  paint(): void {
    const { scrollTop, clientHeight } = this.element;
    this.#live.keep(Math.floor(scrollTop / this.row), Math.ceil((scrollTop + clientHeight) / this.row), this.#count);
  }

  isInView(index: number): boolean {
    const { scrollTop, clientHeight } = this.element;
    return index * this.row >= scrollTop && (index + 1) * this.row <= scrollTop + clientHeight;
  }

  /** Say which line the keyboard is at. */
  activate(index: number): void {
    activate(this.element, this.nodes.get(index));
  }
}

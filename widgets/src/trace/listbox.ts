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
  /** Which line the keyboard is at, and whether it was in view when the view was so high. */
  #active = -1;
  #isSeen = false;
  #height = 0;

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
    onView(this.element, () => this.paint(), () => this.#resize(), signal);
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
    // who hears of a scroll before the new size would take a line that is cut off for one that was left
    if (clientHeight === this.#height) this.#isSeen = this.isInView(this.#active);
    this.#live.keep(Math.floor(scrollTop / this.row), Math.ceil((scrollTop + clientHeight) / this.row), this.#count);
  }

  isInView(index: number): boolean {
    const { scrollTop, clientHeight } = this.element;
    return index * this.row >= scrollTop && (index + 1) * this.row <= scrollTop + clientHeight;
  }

  /** Bring a line into view; nothing around scrolls, such as a notebook. */
  reveal(index: number): void {
    const { scrollTop, clientHeight } = this.element;
    if (index >= 0 && !this.isInView(index)) this.element.scrollTop = index * this.row < scrollTop ? (index - 1) * this.row : (index + 3) * this.row - clientHeight;
    this.paint();
  }

  /** What is in view stays there. */
  #resize(): void {
    if (this.#isSeen) this.reveal(this.#active);
    this.#height = this.element.clientHeight;
    this.paint();
  }

  /** Say which line the keyboard is at. */
  activate(index: number): void {
    this.#active = index;
    this.#height = this.element.clientHeight;
    this.#isSeen = this.isInView(index);
    activate(this.element, this.nodes.get(index));
  }
}

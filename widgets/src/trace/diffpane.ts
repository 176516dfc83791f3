// SPDX-License-Identifier: Apache-2.0
// A window on many rows, of which only those in view are in the page. What is too wide is moved sideways by a bar below,
// for all rows at once.
import { el } from "../common/dom.ts";
import { makeFocusable } from "../common/keyboard.ts";
import { LiveRows, onView } from "./live.ts";

export const ROW = 18;
/** So much stays above what one goes to. */
const ABOVE = 4 * ROW;

export interface Rows {
  element(index: number): HTMLElement;
  /** How wide the part of a row that moves sideways is. */
  codeWidth(): number;
  painted(): void;
}

export class Pane {
  readonly viewport = el("div", "tk-rows", [], { role: "grid", "aria-readonly": "true" });
  readonly slider = el("div", "tk-slider", [el("div")], { "aria-hidden": "true" });
  readonly #pad = el("div", "tk-rows-pad", [], { role: "rowgroup" });
  readonly #live = new LiveRows(this.#pad, (index) => this.#draw(index));
  #tops: number[] = [0];
  #columns = 0;
  #width = 0;

  constructor(
    private readonly rows: Rows,
    signal: AbortSignal,
  ) {
    makeFocusable(this.viewport);
    // what scrolls is a stop of its own otherwise
    makeFocusable(this.slider, -1);
    this.viewport.append(this.#pad);
    onView(this.viewport, () => this.paint(), () => this.resize(), signal);
    this.viewport.addEventListener("wheel", (event) => this.#wheel(event), { passive: false, signal });
    this.slider.addEventListener("scroll", () => this.#slide(), { passive: true, signal });
  }

  get tops(): readonly number[] {
    return this.#tops;
  }

  get height(): number {
    return this.#tops[this.#tops.length - 1]!;
  }

  get count(): number {
    return this.#tops.length - 1;
  }

  /** Other rows, of these heights, the widest of so many columns. */
  lay(heights: readonly number[], columns: number): void {
    this.#tops = [0];
    for (const height of heights) this.#tops.push(this.height + height);
    this.#columns = columns;
    this.clear();
    this.#pad.style.height = `${this.height}px`;
    this.viewport.setAttribute("aria-rowcount", String(heights.length));
  }

  /** The rows that are in the page. */
  get live(): ReadonlyMap<number, HTMLElement> {
    return this.#live.nodes;
  }

  clear(): void {
    this.#live.clear();
  }

  paint(): void {
    this.#live.keep(this.first, this.#rowAt(this.viewport.scrollTop + this.viewport.clientHeight), this.count);
    this.rows.painted();
  }

  #draw(index: number): HTMLElement {
    const node = this.rows.element(index);
    node.style.top = `${this.#tops[index]}px`;
    node.setAttribute("aria-rowindex", String(index + 1));
    node.dataset.row = String(index);
    return node;
  }

  repaint(): void {
    this.clear();
    this.paint();
  }

  /** What fits has changed. */
  resize(): void {
    if (!this.viewport.clientWidth) return;
    const missing = Math.max(0, this.#columns * this.characterWidth - this.rows.codeWidth());
    this.slider.hidden = missing === 0;
    (this.slider.firstElementChild as HTMLElement).style.width = `calc(100% + ${missing}px)`;
    this.#slide();
    this.paint();
  }

  // --- up and down -----------------------------------------------------------------------------------------------------

  /** The first row in view. */
  get first(): number {
    return this.#rowAt(this.viewport.scrollTop);
  }

  #rowAt(y: number): number {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#tops[middle + 1]! <= y) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  isInView(row: number): boolean {
    const { scrollTop, clientHeight } = this.viewport;
    return row >= 0 && this.#tops[row]! >= scrollTop && this.#tops[row]! + ROW <= scrollTop + clientHeight;
  }

  /** How far below the top of the view a row begins. */
  offset(row: number): number {
    return this.#tops[row]! - this.viewport.scrollTop;
  }

  scrollTo(row: number, offset = ABOVE): void {
    this.viewport.scrollTop = Math.max(0, this.#tops[row]! - offset);
  }

  show(row: number): void {
    if (!this.isInView(row)) this.scrollTo(row, this.viewport.clientHeight / 2);
  }

  /** Go to the next or the previous of some rows, as seen from where one is. */
  leap(rows: readonly number[], direction: 1 | -1): void {
    const here = this.viewport.scrollTop + ABOVE;
    const isAhead = (row: number): boolean => (direction === 1 ? this.#tops[row]! > here + 1 : this.#tops[row]! < here - 1);
    const row = (direction === 1 ? rows : [...rows].reverse()).find(isAhead);
    if (row !== undefined) this.scrollTo(row);
  }

  /** Go to a share of the whole. */
  jump(share: number): void {
    const shown = Math.max(this.height, this.viewport.clientHeight);
    this.viewport.scrollTop = share * shown - this.viewport.clientHeight / 2;
  }

  // --- sideways --------------------------------------------------------------------------------------------------------

  get characterWidth(): number {
    if (this.#width) return this.#width;
    const probe = el("span", "tk-probe", ["0".repeat(100)]);
    this.viewport.append(probe);
    this.#width = probe.getBoundingClientRect().width / 100;
    probe.remove();
    return this.#width;
  }

  slide(characters: number): void {
    this.slider.scrollLeft += characters * this.characterWidth;
  }

  /** Bring some columns into view. */
  slideTo(column: number, count: number): void {
    const shown = this.rows.codeWidth() / this.characterWidth;
    const from = this.slider.scrollLeft / this.characterWidth;
    const isVisible = column >= from && column + count <= from + shown;
    if (!isVisible) this.slider.scrollLeft = (column + count + 4 - shown) * this.characterWidth;
  }

  #slide(): void {
    this.viewport.style.setProperty("--tk-x", `${-this.slider.scrollLeft}px`);
  }

  #wheel(event: WheelEvent): void {
    const sideways = event.shiftKey ? event.deltaY : event.deltaX;
    if (!sideways || this.slider.hidden) return;
    this.slider.scrollLeft += sideways;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) event.preventDefault();
  }
}

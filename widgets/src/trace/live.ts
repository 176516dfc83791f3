// SPDX-License-Identifier: Apache-2.0
// Of many rows, only those in view are in the page, so a thousand of them cost no more than thirty.

/** Rows that are kept in view beyond those that are, above and below. */
const OVERSCAN = 8;

let kinds = 0;

export class LiveRows {
  readonly #id = `tk-rows-${++kinds}`;
  readonly #nodes = new Map<number, HTMLElement>();

  constructor(
    /** What holds the rows. */
    private readonly pad: HTMLElement,
    private readonly draw: (index: number) => HTMLElement,
  ) {}

  /** Those in the page, by their places among all. */
  get nodes(): ReadonlyMap<number, HTMLElement> {
    return this.#nodes;
  }

  clear(): void {
    this.#nodes.clear();
    this.pad.replaceChildren();
  }

  /** Have the rows from one to before another in the page, of so many, in the order in which they are read aloud and copied. */
  keep(from: number, to: number, count: number): void {
    const first = Math.max(0, from - OVERSCAN);
    const stop = Math.min(count, to + OVERSCAN);
    for (const [index, node] of this.#nodes) {
      if (index >= first && index < stop) continue;
      node.remove();
      this.#nodes.delete(index);
    }
    const above = document.createDocumentFragment();
    const below = document.createDocumentFragment();
    const top = this.#nodes.size ? Math.min(...this.#nodes.keys()) : first;
    for (let index = first; index < stop; index++) {
      if (this.#nodes.has(index)) continue;
      const node = this.draw(index);
      node.id = `${this.#id}-${index}`;
      (index < top ? above : below).append(node);
      this.#nodes.set(index, node);
    }
    this.pad.prepend(above);
    this.pad.append(below);
  }
}

/** Call when other rows come into view: after scrolling, and in another size. */
export function onView(view: HTMLElement, scrolled: () => void, resized: () => void, signal: AbortSignal): void {
  view.addEventListener("scroll", scrolled, { passive: true, signal });
  const observer = new ResizeObserver(resized);
  observer.observe(view);
  signal.addEventListener("abort", () => observer.disconnect());
}

/** Say which of its rows the keyboard is at, of those in the page. */
export function activate(view: HTMLElement, row: HTMLElement | undefined): void {
  if (row) view.setAttribute("aria-activedescendant", row.id);
  else view.removeAttribute("aria-activedescendant");
}

// SPDX-License-Identifier: Apache-2.0
// The side with the list: it is filtered by name, dragged wider, and folded away.
import { el, searchBox, setPressed, toggleButton } from "../common/dom.ts";
import { recall, remember } from "../common/remember.ts";
import type { Filter } from "./filters.ts";
import { List } from "./list.ts";

const NARROWEST = 150;
const WIDEST = 600;
const STEP = 20;

export class Side {
  readonly element: HTMLElement;
  readonly list: List;
  readonly #name = searchBox("Filter passes");
  readonly #eventful: HTMLButtonElement;
  readonly #handle = el("div", "tk-handle", [], { role: "separator", "aria-orientation": "vertical", "aria-label": "Width of the list" });

  constructor(
    /** What the side stands in, at its left. */
    private readonly body: HTMLElement,
    onChoose: (key: string) => void,
    narrow: (filter: Partial<Filter>) => void,
    signal: AbortSignal,
  ) {
    this.list = new List(onChoose, signal);
    this.#eventful = toggleButton("Changed only", "List only passes that did something (c)", () => narrow({ isEventful: this.#eventful.getAttribute("aria-pressed") !== "true" }));
    this.#name.addEventListener("input", () => narrow({ name: this.#name.value }), { signal });
    this.#handle.addEventListener("pointerdown", (event) => this.#drag(event), { signal });
    this.#handle.addEventListener("dblclick", () => this.fold(), { signal });
    this.element = el("aside", "tk-side", [el("div", "tk-side-head", [this.#name, this.#eventful]), this.list.element, this.#handle], { "aria-label": "List of passes" });
    const width = Number(recall("list-width"));
    if (width) this.#widen(width);
  }

  show({ name, isEventful }: Filter): void {
    if (this.#name.value !== name) this.#name.value = name;
    setPressed(this.#eventful, isEventful);
  }

  /** Fold the side away, or show it again. */
  fold(): void {
    this.body.classList.toggle("tk-no-side");
  }

  /** Make it wider by some steps, or narrower. */
  grow(steps: number): void {
    this.#widen(this.element.getBoundingClientRect().width + steps * STEP);
  }

  #drag(event: PointerEvent): void {
    this.#handle.setPointerCapture(event.pointerId);
    const left = this.body.getBoundingClientRect().left;
    const move = (moved: PointerEvent): void => this.#widen(moved.clientX - left);
    this.#handle.addEventListener("pointermove", move);
    this.#handle.addEventListener("lostpointercapture", () => this.#handle.removeEventListener("pointermove", move), { once: true });
    event.preventDefault();
  }

  #widen(pixels: number): void {
    const width = Math.round(Math.min(WIDEST, Math.max(NARROWEST, pixels)));
    this.body.style.setProperty("--tk-side", `${width}px`);
    remember("list-width", String(width));
  }
}

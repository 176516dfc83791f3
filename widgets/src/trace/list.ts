// SPDX-License-Identifier: Apache-2.0
// The list at the side. Only the rows in view are in the page, so a thousand passes cost no more than thirty.
import { el, milliseconds } from "../common/dom.ts";
import { makeFocusable } from "../common/keyboard.ts";
import { blocks, badgeOf, signOf } from "./filters.ts";
import type { Step } from "./journal.ts";
import type { Pair } from "./queries.ts";

const ROW = 24;
const OVERSCAN = 6;
const INDENT = 12;

/** A row: what it shows, and where it leads; a heading leads nowhere. */
export interface Row {
  key: string;
  draw: () => HTMLElement;
}

export class List {
  readonly element = el("div", "tk-list", [], { role: "listbox", "aria-label": "Passes" });
  readonly #pad = el("div", "tk-list-pad", [], { role: "presentation" });
  readonly #live = new Map<number, HTMLElement>();
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
    this.#pad.replaceChildren();
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
    for (const [index, node] of this.#live) this.#mark(index, node);
    const active = this.#live.get(at);
    if (active) this.element.setAttribute("aria-activedescendant", active.id);
    else this.element.removeAttribute("aria-activedescendant");
  }

  #paint(): void {
    const { scrollTop, clientHeight } = this.element;
    const first = Math.max(0, Math.floor(scrollTop / ROW) - OVERSCAN);
    const stop = Math.min(this.#rows.length, Math.ceil((scrollTop + clientHeight) / ROW) + OVERSCAN);
    for (const [index, node] of this.#live) {
      if (index >= first && index < stop) continue;
      node.remove();
      this.#live.delete(index);
    }
    for (let index = first; index < stop; index++) {
      if (this.#live.has(index)) continue;
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
      this.#live.set(index, node);
      // in the order in which they are read
      const next = [...this.#live].filter(([other]) => other > index).sort(([a], [b]) => a - b)[0]?.[1];
      this.#pad.insertBefore(node, next ?? null);
    }
  }

  #mark(index: number, node: HTMLElement): void {
    const { key } = this.#rows[index]!;
    if (key) node.setAttribute("aria-selected", String(key === this.#selected));
  }
}

export const heading = (words: string, remark = "", className = ""): Row => ({
  key: "",
  draw: () => el("div", `tk-heading ${className}`, [el("span", "", [words]), el("span", "tk-heading-remark", [remark])], { role: "presentation" }),
});

/** A step: its number, its sign, what it is called, what it changed, how long it took. */
export function stepRow(step: Step, isHolder: boolean, isMarked: boolean): Row {
  const draw = (): HTMLElement => {
    const { begin } = step;
    const name = el("span", "tk-pass-name", [step.name]);
    name.style.paddingLeft = `${begin.depth * INDENT}px`;
    const node = el(
      "div",
      `tk-pass tk-is-${badgeOf(step)}${isHolder ? " tk-holder" : ""}${isMarked ? " tk-marked" : ""}`,
      [
        el("span", "tk-pass-number", [step.number], { "aria-hidden": "true" }),
        el("span", "tk-sign-of", [signOf(step)], { "aria-hidden": "true" }),
        name,
        change(step),
        el("span", "tk-pass-time", [step.end ? milliseconds(step.ms) : ""]),
      ],
      { role: "option", "aria-label": `${step.number} ${step.name}: ${step.words}`, "data-index": String(begin.index) },
    );
    node.title = [`${step.name}: ${step.words}`, step.end ? milliseconds(step.ms) : "", isHolder ? "has what is looked for" : ""].filter(Boolean).join(" · ");
    return node;
  };
  return { key: keyOf(step), draw };
}

export const keyOf = (step: Step): string => `${step.compile.number}:${step.begin.seq}`;

function change(step: Step): HTMLElement {
  const { end, status } = step;
  if (status === "changed" && end!.add !== null && end!.del !== null) {
    const bars = blocks(end!.add, end!.del).map((what) => el("i", `tk-${what}`));
    return el("span", "tk-pass-change", [
      el("span", "tk-plus", [`+${end!.add}`]),
      el("span", "tk-minus", [`−${end!.del}`]),
      el("span", "tk-bars", bars, { "aria-hidden": "true" }),
    ]);
  }
  const words = { changed: "changed", same: end?.rebuilt ? "rebuilt" : "", translated: "translates", failed: "ERROR", interrupted: "interrupted", aborted: "aborted", unfinished: "unfinished" };
  return el("span", "tk-pass-word", [words[status]]);
}

/** A step of two compiles: whether its results are the same, or which of the two has it. */
export function pairRow(pair: Pair, index: number, isFirstOther: boolean): Row {
  const draw = (): HTMLElement => {
    const step = (pair.a ?? pair.b)!;
    const words = pair.isSame ? "same result" : !pair.a ? "only in B" : !pair.b ? "only in A" : "results differ";
    const sign = pair.isSame ? "=" : !pair.a ? "+" : !pair.b ? "−" : "≠";
    return el(
      "div",
      `tk-pass tk-pair ${pair.isSame ? "tk-is-same" : "tk-is-changed"}${isFirstOther ? " tk-parts" : ""}`,
      [
        el("span", "tk-pass-number", [step.number], { "aria-hidden": "true" }),
        el("span", "tk-sign-of", [sign], { "aria-hidden": "true" }),
        el("span", "tk-pass-name", [step.name]),
        el("span", "tk-pass-word", [isFirstOther ? "parts here" : words]),
        el("span", "tk-pass-time"),
      ],
      { role: "option", "aria-label": `${step.name}: ${words}${isFirstOther ? ", the first" : ""}`, title: `${step.name}: ${words}` },
    );
  };
  return { key: `pair:${index}`, draw };
}

// SPDX-License-Identifier: Apache-2.0
// The texts of a compile beside each other, from the lines of the person to machine code: a line that is chosen in one
// lights up those that it was made from and those that were made from it in all others.
import { button, el, plural } from "../common/dom.ts";
import { focus } from "../common/keyboard.ts";
import { pieces } from "./code.ts";
import { type Binding, press } from "./keys.ts";
import type { Layer, Lines } from "./lines.ts";
import { Listbox } from "./listbox.ts";

const ROW = 18;

/** A line of a text. */
export interface Place {
  id: string;
  line: number;
}

export class Columns {
  readonly element = el("div", "tk-columns", [], { role: "group", "aria-label": "Lines of every language" });
  #columns: Column[] = [];
  #lines: Lines | undefined;
  #life = new AbortController();

  constructor(
    private readonly onChoose: (place: Place) => void,
    signal: AbortSignal,
  ) {
    signal.addEventListener("abort", () => this.#life.abort());
  }

  /** Show the texts of a compile, what belongs with a line of one of them, and behind the last one something else. */
  show(lines: Lines, chosen: Place | undefined, rest: HTMLElement | undefined): void {
    if (this.#lines !== lines) {
      this.#life.abort();
      this.#life = new AbortController();
      this.#lines = lines;
      this.#columns = lines.layers.map((layer) => new Column(layer, (line) => this.onChoose({ id: layer.id, line }), (step) => this.#turn(step), this.#life.signal));
      this.element.replaceChildren(...this.#columns.map(({ element }) => element), ...(rest ? [rest] : []));
    }
    const own = this.#columns.find(({ layer }) => layer.id === chosen?.id);
    const height = own && chosen ? own.heightOf(chosen.line) : undefined;
    for (const column of this.#columns) {
      const lit = chosen ? lines.related(chosen.id, [chosen.line], column.layer.id) : [];
      column.light(lit, column === own ? chosen!.line : undefined, height);
    }
  }

  /** Hand the keyboard to the column beside the one that has it. */
  #turn(step: 1 | -1): void {
    const at = this.#columns.findIndex(({ rows }) => rows === document.activeElement);
    focus(this.#columns[at + step]?.rows);
  }
}

class Column {
  readonly element: HTMLElement;
  readonly #box: Listbox;
  readonly #count = el("span", "tk-dim tk-column-count");
  #lit: readonly number[] = [];
  #chosen: number | undefined;

  constructor(
    readonly layer: Layer,
    private readonly onLine: (line: number) => void,
    private readonly onTurn: (step: 1 | -1) => void,
    signal: AbortSignal,
  ) {
    const { label, lines } = layer;
    const digits = String(Math.max(lines.length, ...(layer.numbers?.map((number) => number ?? 0) ?? []))).length;
    const longest = lines.reduce((most, line) => Math.max(most, line.length), 0);
    this.#box = new Listbox("tk-column-rows", label, ROW, (line) => this.#drawn(line), signal);
    this.#box.pad.style.width = `calc(${longest + digits + 1}ch + 30px)`;
    this.#box.pad.style.setProperty("--tk-digits", `${digits}ch`);
    this.#box.lay(lines.length);
    const ends = [button("‹", `Previous line of ${label} that belongs here (p)`, () => this.#walk(-1), ""), button("›", `Next line of ${label} that belongs here (n)`, () => this.#walk(1), "")];
    const head = el("div", "tk-column-head", [el("b", "", [label]), this.#count, el("span", "tk-grow"), el("span", "tk-column-ends", ends)]);
    this.element = el("section", "tk-column", [head, this.rows]);
    this.rows.addEventListener("click", (event) => this.#click(event), { signal });
    this.rows.addEventListener("keydown", (event) => this.#key(event), { signal });
  }

  get rows(): HTMLElement {
    return this.#box.element;
  }

  /** Light lines up, and bring the first of them to a height unless one of them is in view. */
  light(lit: readonly number[], chosen: number | undefined, height = this.rows.clientHeight / 3): void {
    this.#lit = lit;
    this.#chosen = chosen;
    this.element.classList.toggle("tk-has-lit", lit.length > 0);
    this.#count.textContent = lit.length ? plural(lit.length, "line") : "";
    const shown = chosen === undefined ? lit : [chosen];
    if (shown.length && !shown.some((line) => this.#box.isInView(line))) this.rows.scrollTop = shown[0]! * ROW - height;
    this.#box.paint();
    this.#box.nodes.forEach((node, line) => this.#dress(node, line));
    this.#box.activate(chosen ?? -1);
  }

  /** How far below the top of the view a line stands. */
  heightOf(line: number): number | undefined {
    return this.#box.isInView(line) ? line * ROW - this.rows.scrollTop : undefined;
  }

  #drawn(line: number): HTMLElement {
    const { lines, numbers, language } = this.layer;
    const number = numbers ? numbers[line] : line + 1;
    const node = el("div", "tk-column-line", [el("span", "tk-number", [number == null ? "" : String(number)]), el("code", "", pieces(lines[line]!, language))], {
      role: "option",
      "aria-posinset": String(line + 1),
      "aria-setsize": String(lines.length),
      "data-line": String(line),
    });
    this.#dress(node, line);
    return node;
  }

  #dress(node: HTMLElement, line: number): void {
    const isLit = this.#lit.includes(line);
    node.classList.toggle("tk-lit", isLit);
    node.classList.toggle("tk-chosen", line === this.#chosen);
    node.setAttribute("aria-selected", String(isLit));
  }

  #click(event: Event): void {
    const line = (event.target as HTMLElement).closest<HTMLElement>("[data-line]")?.dataset.line;
    if (line !== undefined) this.onLine(Number(line));
  }

  readonly #keys: readonly Binding[] = [
    ["↑ ↓", "go by lines", () => this.#step(-1), () => this.#step(1)],
    ["← →", "go by columns", () => this.onTurn(-1), () => this.onTurn(1)],
    ["Enter", "choose the line", () => this.#step(0)],
    ["n p", "next, previous line that belongs here", () => this.#walk(1), () => this.#walk(-1)],
  ];

  #key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || !press(this.#keys, event)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Choose the line so many below that which is chosen or lit. */
  #step(by: -1 | 0 | 1): void {
    const line = (this.#chosen ?? this.#lit[0] ?? -1) + by;
    this.onLine(Math.min(Math.max(line, 0), this.layer.lines.length - 1));
  }

  /** Scroll to the next of the lines that are lit, from those in view. */
  #walk(direction: 1 | -1): void {
    const { scrollTop, clientHeight } = this.rows;
    const middle = scrollTop + clientHeight / 2;
    const beyond = this.#lit.filter((line) => (direction > 0 ? line * ROW > middle : (line + 1) * ROW < middle));
    const line = direction > 0 ? beyond[0] : beyond.at(-1);
    if (line !== undefined) this.rows.scrollTop = (line + 0.5) * ROW - clientHeight / 2;
  }
}

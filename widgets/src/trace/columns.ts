// SPDX-License-Identifier: Apache-2.0
// The texts of a compile beside each other, from the lines of the person to machine code: a line that is chosen in one
// lights up those that it was made from and those that were made from it in all others.
import { button, el, plural } from "../common/dom.ts";
import { makeFocusable } from "../common/keyboard.ts";
import { tokens } from "../common/syntax.ts";
import type { Layer, Lines } from "./lines.ts";
import { LiveRows } from "./live.ts";

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
    this.#columns[at + step]?.rows.focus({ preventScroll: true });
  }
}

class Column {
  readonly element: HTMLElement;
  readonly rows = el("div", "tk-column-rows", [], { role: "listbox" });
  readonly #pad = el("div", "tk-column-pad", [], { role: "presentation" });
  readonly #count = el("span", "tk-dim tk-column-count");
  readonly #live = new LiveRows(this.#pad, (line) => this.#drawn(line));
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
    makeFocusable(this.rows);
    this.rows.setAttribute("aria-label", label);
    this.rows.append(this.#pad);
    this.#pad.style.height = `${lines.length * ROW}px`;
    this.#pad.style.width = `calc(${longest + digits + 1}ch + 30px)`;
    this.#pad.style.setProperty("--tk-digits", `${digits}ch`);
    const ends = [button("‹", `Previous line of ${label} that belongs here (p)`, () => this.#walk(-1), ""), button("›", `Next line of ${label} that belongs here (n)`, () => this.#walk(1), "")];
    const head = el("div", "tk-column-head", [el("b", "", [label]), this.#count, el("span", "tk-grow"), el("span", "tk-column-ends", ends)]);
    this.element = el("section", "tk-column", [head, this.rows]);
    this.rows.addEventListener("scroll", () => this.#paint(), { passive: true, signal });
    this.rows.addEventListener("click", (event) => this.#click(event), { signal });
    this.rows.addEventListener("keydown", (event) => this.#key(event), { signal });
    const observer = new ResizeObserver(() => this.#paint());
    observer.observe(this.rows);
    signal.addEventListener("abort", () => observer.disconnect());
  }

  /** Light lines up, and bring the first of them to a height unless one of them is in view. */
  light(lit: readonly number[], chosen: number | undefined, height = this.rows.clientHeight / 3): void {
    this.#lit = lit;
    this.#chosen = chosen;
    this.element.classList.toggle("tk-has-lit", lit.length > 0);
    this.#count.textContent = lit.length ? plural(lit.length, "line") : "";
    const shown = chosen === undefined ? lit : [chosen];
    if (shown.length && !shown.some((line) => this.#isInView(line))) this.rows.scrollTop = shown[0]! * ROW - height;
    this.#paint();
    this.#live.nodes.forEach((node, line) => this.#dress(node, line));
    const active = chosen === undefined ? undefined : this.#live.nodes.get(chosen);
    if (active) this.rows.setAttribute("aria-activedescendant", active.id);
    else this.rows.removeAttribute("aria-activedescendant");
  }

  /** How far below the top of the view a line stands. */
  heightOf(line: number): number | undefined {
    return this.#isInView(line) ? line * ROW - this.rows.scrollTop : undefined;
  }

  #isInView(line: number): boolean {
    const { scrollTop, clientHeight } = this.rows;
    return line * ROW >= scrollTop && (line + 1) * ROW <= scrollTop + clientHeight;
  }

  #paint(): void {
    const { scrollTop, clientHeight } = this.rows;
    this.#live.keep(Math.floor(scrollTop / ROW), Math.ceil((scrollTop + clientHeight) / ROW), this.layer.lines.length);
  }

  #drawn(line: number): HTMLElement {
    const { id, lines, numbers, language } = this.layer;
    const number = numbers ? numbers[line] : line + 1;
    const node = el("div", "tk-column-line", [el("span", "tk-number", [number == null ? "" : String(number)]), el("code", "", colored(lines[line]!, language))], {
      role: "option",
      id: `tk-column-line-${id}-${line}`,
      "data-line": String(line),
    });
    node.style.top = `${line * ROW}px`;
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

  #key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.#chosen ?? this.#lit[0] ?? -1;
    const go = (line: number): void => this.onLine(Math.min(Math.max(line, 0), this.layer.lines.length - 1));
    const actions: Record<string, () => void> = {
      ArrowDown: () => go(at + 1),
      ArrowUp: () => go(at - 1),
      ArrowLeft: () => this.onTurn(-1),
      ArrowRight: () => this.onTurn(1),
      Enter: () => go(at),
      n: () => this.#walk(1),
      p: () => this.#walk(-1),
    };
    const action = actions[event.key];
    if (!action) return;
    action();
    event.preventDefault();
    event.stopPropagation();
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

/** A line with its colors. */
function colored(text: string, language: Layer["language"]): (Node | string)[] {
  const parts: (Node | string)[] = [];
  let at = 0;
  for (const { start, stop, style } of tokens(text, language)) {
    parts.push(text.slice(at, start), el("i", style, [text.slice(start, stop)]));
    at = stop;
  }
  return [...parts, text.slice(at)];
}

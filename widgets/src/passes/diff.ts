// SPDX-License-Identifier: Apache-2.0
// Two texts side by side. Only the rows in view are in the page, so thousands of lines cost no more than forty.
import { el, plural } from "../common/dom.ts";
import { makeFocusable } from "../common/keyboard.ts";
import { type Language, tokens } from "../common/syntax.ts";
import { Kind, type Span, spans } from "../common/textdiff.ts";
import { BESIDE, FOLD, type PassText, type Row } from "./model.ts";

const ROW = 18;
const FOLD_ROW = 24;
const OVERSCAN = 8;
const MAX_MARKS = 240;

export interface Sides {
  before: string;
  after: string;
  languages: [before: Language, after: Language];
  label: string;
}

export class DiffView {
  readonly element: HTMLElement;
  readonly viewport = el("div", "tk-rows", [], { role: "table" });
  readonly #pad = el("div", "tk-rows-pad", [], { role: "rowgroup" });
  readonly #ruler = el("div", "tk-ruler", [], { "aria-hidden": "true" });
  readonly #slider = el("div", "tk-slider", [el("div")], { "aria-hidden": "true" });
  readonly #heads = [el("span"), el("span")] as const;
  readonly #live = new Map<number, HTMLElement>();
  #text: PassText | undefined;
  #languages: [Language, Language] = ["ir", "ir"];
  #tops: number[] = [0];
  #columns = 0;
  #width = 0;
  #found: { row: number; needle: string } | undefined;

  constructor(signal: AbortSignal) {
    makeFocusable(this.viewport);
    this.viewport.append(this.#pad);
    this.element = el("div", "tk-diff", [
      el("div", "tk-heads", [...this.#heads]),
      el("div", "tk-diff-body", [this.viewport, this.#ruler]),
      this.#slider,
    ]);
    this.viewport.addEventListener("scroll", () => this.#paint(), { passive: true, signal });
    this.viewport.addEventListener("wheel", (event) => this.#wheel(event), { passive: false, signal });
    this.viewport.addEventListener("click", (event) => this.#click(event), { signal });
    this.#slider.addEventListener("scroll", () => this.#slide(), { passive: true, signal });
    this.#ruler.addEventListener("click", (event) => this.#jump(event), { signal });
    const observer = new ResizeObserver(() => this.#resize());
    observer.observe(this.viewport);
    signal.addEventListener("abort", () => observer.disconnect());
  }

  /** Show a pass: from its first change, or from its top. */
  show(text: PassText, sides: Sides): void {
    this.#text = text;
    this.#languages = sides.languages;
    this.#found = undefined;
    this.#heads[0].replaceChildren(sides.before, el("em", "", ["before"]));
    this.#heads[1].replaceChildren(sides.after, el("em", "", ["after"]));
    this.viewport.setAttribute("aria-label", sides.label);
    this.#layOut(text);
    const [first] = text.changes();
    this.viewport.scrollTop = first === undefined ? 0 : Math.max(0, this.#tops[first]! - 4 * ROW);
    this.#slider.scrollLeft = 0;
    this.#resize();
  }

  /** Lay the rows out again, after folding. */
  refresh(): void {
    if (!this.#text) return;
    this.#layOut(this.#text);
    this.#resize();
  }

  get rowCount(): number {
    return this.#text?.rows.length ?? 0;
  }

  /** Go to the next or the previous change, as seen from the top of the view. */
  change(direction: 1 | -1): void {
    const here = this.viewport.scrollTop + 4 * ROW;
    const places = (this.#text?.changes() ?? []).map((row) => this.#tops[row]!);
    const place = direction === 1 ? places.find((top) => top > here + 1) : places.reverse().find((top) => top < here - 1);
    if (place !== undefined) this.viewport.scrollTop = Math.max(0, place - 4 * ROW);
  }

  /** Bring a row into view and mark what was found in it. */
  reveal(row: number, needle: string): void {
    this.#found = { row, needle };
    const top = this.#tops[row]!;
    const { scrollTop, clientHeight } = this.viewport;
    if (top < scrollTop || top + ROW > scrollTop + clientHeight) this.viewport.scrollTop = top - clientHeight / 2;
    this.#slideTo(row, needle);
    this.#clear();
    this.#paint();
  }

  #slideTo(row: number, needle: string): void {
    const { left, right } = this.#text!.rows[row]!;
    const columns = [this.#text!.after[right], this.#text!.before[left]].map((line) => line?.toLowerCase().indexOf(needle) ?? -1);
    const column = columns.find((at) => at >= 0) ?? 0;
    const shown = (this.viewport.clientWidth - 2 * 54) / 2 / this.#characterWidth();
    const from = this.#slider.scrollLeft / this.#characterWidth();
    const isVisible = column >= from && column + needle.length <= from + shown;
    if (!isVisible) this.#slider.scrollLeft = (column + needle.length + 4 - shown) * this.#characterWidth();
  }

  slide(characters: number): void {
    this.#slider.scrollLeft += characters * this.#characterWidth();
  }

  // --- painting --------------------------------------------------------------------------------------------------------

  get #height(): number {
    return this.#tops[this.#tops.length - 1]!;
  }

  #layOut(text: PassText): void {
    this.#tops = [0];
    for (const row of text.rows) this.#tops.push(this.#tops[this.#tops.length - 1]! + (row.kind === FOLD ? FOLD_ROW : ROW));
    this.#clear();
    this.#pad.style.height = `${this.#height}px`;
    this.viewport.setAttribute("aria-rowcount", String(text.rows.length));
    const longest = (lines: string[]): number => lines.reduce((most, line) => Math.max(most, line.length), 0);
    this.#columns = Math.max(longest(text.before), longest(text.after)) + 2;
  }

  #clear(): void {
    this.#live.clear();
    this.#pad.replaceChildren();
  }

  #rowAt(y: number): number {
    let low = 0;
    let high = this.rowCount;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#tops[middle + 1]! <= y) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #paint(): void {
    if (!this.#text) return;
    const { scrollTop, clientHeight } = this.viewport;
    const first = Math.max(0, this.#rowAt(scrollTop) - OVERSCAN);
    const stop = Math.min(this.rowCount, this.#rowAt(scrollTop + clientHeight) + OVERSCAN);
    for (const [index, node] of this.#live) {
      if (index >= first && index < stop) continue;
      node.remove();
      this.#live.delete(index);
    }
    const added = document.createDocumentFragment();
    for (let index = first; index < stop; index++) {
      if (this.#live.has(index)) continue;
      const node = this.#row(index, this.#text.rows[index]!);
      this.#live.set(index, node);
      added.append(node);
    }
    this.#pad.append(added);
  }

  #row(index: number, row: Row): HTMLElement {
    const node = row.kind === FOLD ? foldRow(row) : this.#pairRow(row, this.#found?.row === index ? this.#found.needle : "");
    node.style.top = `${this.#tops[index]}px`;
    node.setAttribute("aria-rowindex", String(index + 1));
    node.dataset.row = String(index);
    return node;
  }

  #pairRow(row: Row, needle: string): HTMLElement {
    const { before, after } = this.#text!;
    const left = row.left < 0 ? undefined : before[row.left]!;
    const right = row.right < 0 ? undefined : after[row.right]!;
    const [removed, added] = row.kind === Kind.Edited ? spans(left!, right!) : [[], []];
    const isChanged = row.kind !== Kind.Same && row.kind !== BESIDE;
    return el(
      "div",
      `tk-row${needle ? " tk-found" : ""}`,
      [
        ...side(left, row.left, isChanged ? "removed" : "", removed, this.#languages[0], needle),
        ...side(right, row.right, isChanged ? "added" : "", added, this.#languages[1], needle),
      ],
      { role: "row" },
    );
  }

  #click(event: MouseEvent): void {
    const node = (event.target as HTMLElement).closest<HTMLElement>(".tk-fold");
    const row = node && this.#text?.rows[Number(node.dataset.row)];
    if (!row) return;
    this.#text!.open(row);
    this.refresh();
  }

  // --- beside the rows -------------------------------------------------------------------------------------------------

  #resize(): void {
    if (!this.#text || !this.viewport.clientWidth) return;
    const code = (this.viewport.clientWidth - 2 * 54) / 2;
    const missing = Math.max(0, this.#columns * this.#characterWidth() - code);
    this.#slider.hidden = missing === 0;
    (this.#slider.firstElementChild as HTMLElement).style.width = `calc(100% + ${missing}px)`;
    this.#slide();
    this.#paintRuler();
    this.#paint();
  }

  #characterWidth(): number {
    if (this.#width) return this.#width;
    const probe = el("span", "tk-probe", ["0".repeat(100)]);
    this.viewport.append(probe);
    this.#width = probe.getBoundingClientRect().width / 100;
    probe.remove();
    return this.#width;
  }

  #slide(): void {
    this.viewport.style.setProperty("--tk-x", `${-this.#slider.scrollLeft}px`);
  }

  #wheel(event: WheelEvent): void {
    const sideways = event.shiftKey ? event.deltaY : event.deltaX;
    if (!sideways || this.#slider.hidden) return;
    this.#slider.scrollLeft += sideways;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) event.preventDefault();
  }

  /** One mark for each stretch of changes; stretches that would lie on each other become one. */
  #paintRuler(): void {
    const scale = 1 / Math.max(this.#height, this.viewport.clientHeight, 1);
    const marks: { kind: string; top: number; bottom: number }[] = [];
    this.#text!.rows.forEach((row, index) => {
      const kind = { [Kind.Edited]: "both", [Kind.Replaced]: "both", [Kind.Removed]: "removed", [Kind.Added]: "added" }[row.kind as number];
      if (!kind) return;
      const last = marks[marks.length - 1];
      const top = this.#tops[index]! * scale;
      const bottom = this.#tops[index + 1]! * scale;
      const touches = last && top - last.bottom < 1 / MAX_MARKS && (last.kind === kind || last.bottom - last.top < 1 / MAX_MARKS);
      if (touches) {
        last.bottom = bottom;
        if (last.kind !== kind) last.kind = "both";
      } else {
        marks.push({ kind, top, bottom });
      }
    });
    this.#ruler.replaceChildren(
      ...marks.map(({ kind, top, bottom }) => {
        const mark = el("i", `tk-${kind}`);
        mark.style.top = `${100 * top}%`;
        mark.style.height = `max(2px, ${100 * (bottom - top)}%)`;
        return mark;
      }),
    );
  }

  #jump(event: MouseEvent): void {
    const { top, height } = this.#ruler.getBoundingClientRect();
    const shown = Math.max(this.#height, this.viewport.clientHeight);
    this.viewport.scrollTop = ((event.clientY - top) / height) * shown - this.viewport.clientHeight / 2;
  }
}

function foldRow(row: Row): HTMLElement {
  const words = el("span", "tk-fold-words", [plural(row.hidden, "unchanged line")], { role: "cell" });
  const node = el("div", "tk-fold", [el("span", "tk-fold-sign", ["↕"], { "aria-hidden": "true" }), words], { role: "row" });
  node.title = "Show these lines";
  return node;
}

function side(text: string | undefined, line: number, change: string, marked: Span[], language: Language, needle: string): HTMLElement[] {
  if (text === undefined) {
    return [el("span", "tk-number tk-void"), el("span", "tk-sign tk-void"), el("code", "tk-void", [], { role: "cell" })];
  }
  const colored = change ? ` tk-${change}` : "";
  const sign = change === "removed" ? "−" : change === "added" ? "+" : "";
  return [
    el("span", `tk-number${colored}`, [String(line + 1)], { role: "rowheader" }),
    el("span", `tk-sign${colored}`, [sign], { role: "cell" }),
    el("code", colored.trim(), [el("span", "tk-code", pieces(text, marked, language, needle))], { role: "cell" }),
  ];
}

/** The text cut where its color or its mark changes. */
function pieces(text: string, marked: Span[], language: Language, needle: string): (Node | string)[] {
  const styles = tokens(text, language).map(({ start, stop, style }) => ({ start, stop, style }));
  const at = needle ? text.toLowerCase().indexOf(needle) : -1;
  const all: { start: number; stop: number; tag: "mark" | "i"; style: string }[] = [
    ...(at < 0 ? [] : [{ start: at, stop: at + needle.length, tag: "mark" as const, style: "tk-hit" }]),
    ...marked.map(([start, stop]) => ({ start, stop, tag: "mark" as const, style: "" })),
    ...styles.map((token) => ({ ...token, tag: "i" as const })),
  ];
  const cuts = [...new Set([0, text.length, ...all.flatMap(({ start, stop }) => [start, stop])])].sort((a, b) => a - b);
  const result: (Node | string)[] = [];
  let mark: { node: HTMLElement; of: (typeof all)[number] } | undefined;
  for (let n = 0; n + 1 < cuts.length; n++) {
    const [start, stop] = [cuts[n]!, cuts[n + 1]!];
    const over = (tag: string) => all.find((piece) => piece.tag === tag && piece.start <= start && stop <= piece.stop);
    const [marking, coloring] = [over("mark"), over("i")];
    const part = text.slice(start, stop);
    const node = coloring ? el("i", coloring.style, [part]) : part;
    if (!marking) {
      mark = undefined;
      result.push(node);
    } else if (mark?.of === marking) {
      mark.node.append(node);
    } else {
      mark = { node: el("mark", marking.style, [node]), of: marking };
      result.push(mark.node);
    }
  }
  return result;
}

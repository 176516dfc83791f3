// SPDX-License-Identifier: Apache-2.0
// The line that is chosen, wherever it stands, and what belongs with it in every text of its compile: in words below the
// texts that are shown, and in columns of all of them.
import { button, el, plural } from "../common/dom.ts";
import { Columns, type Place } from "./columns.ts";
import type { Compile, Journal } from "./journal.ts";
import { type Layer, Lines } from "./lines.ts";

export class Links {
  /** Where the chosen line comes from and what became of it; each of them opens the columns. */
  readonly bar = el("div", "tk-links", [], { role: "status", "aria-label": "What belongs with the chosen line" });
  readonly #columns: Columns;
  readonly #lines = new Map<Compile, Lines>();
  #compile: Compile | undefined;
  #chosen: Place | undefined;
  #isOpen = false;

  constructor(
    private readonly journal: Journal,
    /** Called when another line is chosen, or the columns open or close. */
    private readonly onChange: () => void,
    /** Asks for the machine code, where it can be had. */
    private readonly askOn: (() => void) | undefined,
    signal: AbortSignal,
  ) {
    this.#columns = new Columns((place) => this.choose(place), signal);
    this.#columns.element.hidden = this.bar.hidden = true;
  }

  get columns(): HTMLElement {
    return this.#columns.element;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Whether the lines of the compile that is shown are known. */
  get isKnown(): boolean {
    return this.#compile !== undefined && !this.#of(this.#compile).isEmpty;
  }

  /** Go on with this compile; a line that was chosen in another one says nothing here. */
  turnTo(compile: Compile): void {
    if (compile === this.#compile) return;
    this.#compile = compile;
    this.#chosen = undefined;
    this.#isOpen &&= this.isKnown;
    this.#draw();
  }

  choose(place: Place | undefined): void {
    this.#chosen = this.isKnown ? place : undefined;
    this.#draw();
    this.onChange();
  }

  toggle(): void {
    this.#isOpen = !this.#isOpen && this.isKnown;
    this.#draw();
    this.onChange();
  }

  /** The lines of a text that belong with the chosen one. */
  lit(id: string | null): number[] {
    if (!this.#compile || !this.#chosen || id === null) return [];
    return this.#of(this.#compile).related(this.#chosen.id, [this.#chosen.line], id);
  }

  /** What is shown, in a word: which line of which column, where the columns are open. */
  get state(): string {
    if (!this.#isOpen || !this.#compile) return "";
    const at = this.#layers.findIndex(({ id }) => id === this.#chosen?.id);
    return at < 0 ? "1" : `${at}.${this.#chosen!.line + 1}`;
  }

  set state(word: string) {
    const [, at, line] = /^(\d+)\.(\d+)$/.exec(word) ?? [];
    const layer = this.#layers[Number(at ?? -1)];
    this.#isOpen = word !== "" && this.isKnown;
    this.#chosen = layer && layer.lines[Number(line) - 1] !== undefined ? { id: layer.id, line: Number(line) - 1 } : undefined;
    this.#draw();
  }

  get #layers(): readonly Layer[] {
    return this.#compile ? this.#of(this.#compile).layers : [];
  }

  #of(compile: Compile): Lines {
    let lines = this.#lines.get(compile);
    if (!lines) this.#lines.set(compile, (lines = new Lines(this.journal, compile)));
    return lines;
  }

  #draw(): void {
    this.columns.hidden = !this.#isOpen;
    this.bar.hidden = this.#isOpen || !this.#chosen;
    if (!this.#compile) return;
    if (this.#isOpen) this.#columns.show(this.#of(this.#compile), this.#chosen, this.#rest(this.#compile));
    else if (this.#chosen) this.bar.replaceChildren(...this.#layers.map((layer) => this.#link(layer, this.lit(layer.id))));
  }

  /** What stands where columns are missing. */
  #rest(compile: Compile): HTMLElement | undefined {
    if (this.#layers.some(({ language }) => language === "sass")) return undefined;
    const absent = compile.notes.get("absent");
    if (absent && !this.askOn) return el("div", "tk-column-rest", [el("b", "", [`no ${absent.stage}`]), ` ${absent.why}`, el("p", "", [absent.help ?? ""])]);
    if (!this.askOn) return undefined;
    const ask = button("Show PTX and machine code", "Compile for the GPU, and show PTX and machine code", () => {
      ask.disabled = true;
      ask.textContent = "compiling …";
      this.askOn!();
    });
    return el("div", "tk-column-rest", [ask]);
  }

  #link(layer: Layer, lines: readonly number[]): HTMLElement {
    const { label, numbers } = layer;
    const shown = lines.flatMap((line) => (numbers ? (numbers[line] ?? []) : line + 1));
    const name = lines.length ? `${plural(lines.length, "line")} of ${label}: beside each other (m)` : `no line of ${label}`;
    const node = button("", name, () => this.toggle(), "tk-link");
    const [only] = lines;
    node.append(el("b", "", [label]), ` ${shown.length ? ranges(shown) : "–"} `, ...(only === undefined ? [] : [el("code", "", [layer.lines[only]!.trim()])]));
    node.toggleAttribute("disabled", lines.length === 0);
    return node;
  }
}

/** Ascending numbers in few words: `3–5, 9 +2`. */
export function ranges(numbers: readonly number[]): string {
  const all: [first: number, last: number][] = [];
  for (const number of numbers) {
    const last = all.at(-1);
    if (last && number === last[1] + 1) last[1] = number;
    else all.push([number, number]);
  }
  const words = all.slice(0, 2).map(([first, last]) => (first === last ? String(first) : `${first}–${last}`));
  const more = numbers.length - all.slice(0, 2).reduce((sum, [first, last]) => sum + last - first + 1, 0);
  return `${words.join(", ")}${more ? ` +${more}` : ""}`;
}

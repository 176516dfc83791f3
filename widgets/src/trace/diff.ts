// SPDX-License-Identifier: Apache-2.0
// Two texts side by side or in one column: how they are shown, and what keys and clicks do in them.
import { el, plural } from "../common/dom.ts";
import { type Language, names } from "../common/syntax.ts";
import { Show } from "./diffalign.ts";
import { Aligner, type Answer } from "./diffaligner.ts";
import { Pane, ROW } from "./diffpane.ts";
import { rowElement } from "./diffrows.ts";
import { Ruler } from "./diffruler.ts";
import { Switches } from "./diffswitches.ts";
import { DiffText, type Origins, type Place, type Row, type Settings, type Side, type Texts } from "./difftext.ts";
import { nameAt, type ShownLine, Uses } from "./diffuses.ts";

const FOLD_ROW = 24;
const SIGN = 16;
const GUTTER = 130;

interface DiffEvents {
  /** A line was clicked or reached by the arrows. */
  onLine(side: Side, line: number): void;
  /** The settings or the pins changed. */
  onChange(): void;
  /** What stands beside a line of the new text was clicked. */
  onBlame(line: number): void;
}

export interface Shown {
  before: readonly string[];
  /** Null where there is but one text. */
  after: readonly string[] | null;
  languages: readonly [before: Language, after: Language];
  labels: readonly [before: string, after: string];
  /** What each of them is to the other, where its label does not say it. */
  sides?: readonly [before: string, after: string];
  /** Two languages, which stand beside each other and are not compared. */
  isTranslation: boolean;
  /** Of a translation: for each new line the old one that it was made of. */
  origins?: Origins | undefined;
}

const DIFF_KEYS: readonly [keys: string, what: string][] = [
  ["n p", "next, previous change"],
  ["↑ ↓", "go by lines"],
  ["← →", "mark the uses of a name in the line, or look aside"],
  ["Enter", "open the fold, follow the moved block"],
  ["e E", "open or close one fold, all folds"],
  ["u", "one column or two"],
  ["w", "show re-indented lines as such"],
  ["r", "fold lines that differ by renaming only"],
  ["F7 a", "align: say which two lines belong together"],
  ["Shift+F7", "take such a pin back"],
];

export class DiffView {
  readonly element: HTMLElement;
  readonly keys = DIFF_KEYS;
  readonly #pane: Pane;
  readonly #ruler: Ruler;
  readonly #switches = new Switches((changes) => this.#apply(changes), () => this.#align());
  readonly #aligner = new Aligner();
  readonly #uses = new Uses();
  readonly #heads = [el("span"), el("span")] as const;
  readonly #summary = el("span", "tk-diff-summary");
  readonly #message = el("div", "tk-diff-message", [], { role: "status" });
  #text: DiffText | undefined;
  /** The pins of texts that were shown before, and those that the address of the page came with. */
  readonly #keptPins = new Map<string, string>();
  #givenPins: string | undefined;
  #cursor: Place | undefined;
  /** The name whose uses stay marked where the pointer is on none. */
  #name = "";
  #found: { place: Place; needle: string } | undefined;
  #lit: Record<Side, ReadonlySet<number>> = { left: new Set(), right: new Set() };
  #notes: Record<Side, readonly string[]> = { left: [], right: [] };

  constructor(
    signal: AbortSignal,
    private readonly events: DiffEvents,
  ) {
    this.#pane = new Pane({ element: (index) => this.#row(index), codeWidth: () => this.#codeWidth, painted: () => this.#painted() }, signal);
    this.#ruler = new Ruler((share) => this.#pane.jump(share), signal);
    this.element = el("div", "tk-diff", [
      el("div", "tk-heads", [this.#heads[0], el("div", "tk-head", [this.#heads[1], this.#summary])]),
      this.#message,
      el("div", "tk-diff-body", [this.viewport, this.#ruler.element]),
      this.#pane.slider,
    ]);
    this.viewport.addEventListener("click", (event) => this.#click(event), { signal });
    this.viewport.addEventListener("mousemove", (event) => this.#hover(event), { passive: true, signal });
    this.viewport.addEventListener("mouseleave", () => this.#mark(this.#name), { passive: true, signal });
    signal.addEventListener("abort", () => this.#uses.clear());
    this.#say("");
  }

  /** What has the focus when keys are for the rows. */
  get viewport(): HTMLElement {
    return this.#pane.viewport;
  }

  /** What switches the view, for whoever has a place for it. */
  get switches(): HTMLElement {
    return this.#switches.element;
  }

  /** Whether the next line that is clicked becomes part of a pin. */
  get isPicking(): boolean {
    return this.#aligner.isOn;
  }

  /** The line that one is at. */
  get cursor(): Place | undefined {
    return this.#cursor;
  }

  /** Show two texts, from their first change or from their top; the same ones again as they stand. */
  show({ before, after, languages, labels, sides, isTranslation, origins }: Shown): void {
    const shown = this.#text?.texts;
    const texts: Texts = { before, after: after ?? [], languages, labels, isTranslation: isTranslation || after === null, origins };
    const isAgain = shown !== undefined && isEqual(shown.before, before) && isEqual(shown.after, texts.after) && isEqual(shown.labels, labels);
    if (isAgain && this.#givenPins === undefined && shown.isTranslation === texts.isTranslation) return this.#pane.repaint();
    this.#text = undefined;
    if (this.#givenPins !== undefined) this.#keptPins.set(keyOf(texts), this.#givenPins);
    this.#aligner.restore(this.#keptPins.get(keyOf(texts)) ?? "", before.length, texts.after.length);
    this.#givenPins = this.#found = this.#cursor = undefined;
    this.#name = "";
    this.#lit = { left: new Set(), right: new Set() };
    this.#annotate({ left: [], right: [] });
    this.#heads.forEach((head, n) => head.replaceChildren(labels[n]!, ...(after === null || !sides ? [] : [el("em", "", [sides[n]!])])));
    this.element.classList.toggle("tk-single", after === null);
    this.viewport.setAttribute("aria-label", labels.filter(Boolean).join(" and "));
    this.#say("");
    this.#compare(texts);
    const [first] = this.#text!.changes();
    this.#lay(() => {
      if (first === undefined) this.viewport.scrollTop = 0;
      else this.#pane.scrollTo(first);
      this.#pane.slider.scrollLeft = 0;
    });
  }

  /** How the texts are drawn, for the address of a page: what is not as it is at first, and the pins. */
  get state(): string {
    const { text } = this.#aligner;
    return [...this.#switches.words, ...(text ? [`p${text}`] : [])].join("_");
  }

  set state(text: string) {
    const words = new Set(text.split("_"));
    this.#givenPins = [...words].find((word) => word.startsWith("p"))?.slice(1) ?? "";
    this.#set(Switches.settings(words));
  }

  /** Whether a key was for this view, which then did what it stands for. */
  key(key: string, event: KeyboardEvent): boolean {
    const text = this.#text;
    if (!text) return false;
    const actions: Record<string, () => void> = {
      n: () => this.#pane.leap(text.changes(), 1),
      p: () => this.#pane.leap(text.changes(), -1),
      u: () => this.#switches.toggle("unified"),
      w: () => this.#switches.toggle("indents"),
      r: () => this.#switches.toggle("renames"),
      e: () => this.#staying(() => text.toggle(this.#rowOfCursor())),
      E: () => this.#staying(() => text.expand(!text.isExpanded)),
      a: () => this.#align(),
      F7: () => (event.shiftKey ? this.#answer(this.#aligner.takeBack(this.#cursor)) : this.#align()),
    };
    if (document.activeElement === this.viewport) {
      actions.ArrowDown = () => this.#step(1);
      actions.ArrowUp = () => this.#step(-1);
      actions.ArrowRight = () => this.#sidestep(1);
      actions.ArrowLeft = () => this.#sidestep(-1);
      actions.Enter = () => this.#enter();
    }
    if (this.isPicking || this.#cursor || this.#name || !this.#message.hidden) actions.Escape = () => this.#escape();
    actions[key]?.();
    return actions[key] !== undefined;
  }

  /** Bring a line into view, open what hides it, and put the cursor on it. */
  reveal(side: Side, line: number): void {
    const place = { side, line };
    const row = this.#text?.reveal(place) ?? -1;
    if (row < 0) return;
    this.#cursor = place;
    this.#lay(() => this.#pane.show(row));
  }

  /** Go to the first, next or previous place where something stands: which of how many it is. */
  find(needle: string, direction: -1 | 0 | 1): { at: number; of: number } {
    const places = this.#text?.find(needle) ?? [];
    const here = this.#found && places.findIndex(({ side, line }) => side === this.#found!.place.side && line === this.#found!.place.line);
    const at = direction === 0 || here === undefined ? 0 : (here + direction + places.length) % Math.max(places.length, 1);
    const place = places[at];
    const wasMarked = this.#found !== undefined;
    this.#found = place && { place, needle };
    if (!place) {
      if (wasMarked) this.#pane.repaint();
      return { at: 0, of: 0 };
    }
    this.reveal(place.side, place.line);
    const column = this.#text!.line(place).toLowerCase().indexOf(needle.toLowerCase());
    this.#pane.slideTo(column, needle.length);
    return { at: at + 1, of: places.length };
  }

  /** Light lines up, as those that another line came from. */
  light(side: Side, lines: Iterable<number>): void {
    const lit = new Set(lines);
    if (!lit.size && !this.#lit[side].size) return;
    this.#lit = { ...this.#lit, [side]: lit };
    this.#pane.repaint();
  }

  /** Say something beside each line of the new text, and beside those of the old one that are gone, or nothing. */
  gutter(right: readonly string[] | null, left: readonly string[] = []): void {
    if (!this.#isNoted && !left.length && !right?.length) return;
    this.#annotate({ left, right: right ?? [] });
    this.#pane.clear();
    this.#pane.resize();
  }

  #annotate(notes: Record<Side, readonly string[]>): void {
    this.#notes = notes;
    this.element.classList.toggle("tk-noted", this.#isNoted);
  }

  // --- settings --------------------------------------------------------------------------------------------------------

  #apply(changes: Partial<Settings>): void {
    this.#set(changes);
    this.events.onChange();
  }

  #set(changes: Partial<Settings>): void {
    const { indents, renames } = this.#switches.settings;
    const settings = (this.#switches.settings = { ...this.#switches.settings, ...changes });
    this.#dress();
    const text = this.#text;
    if (!text) return;
    const isCompared = indents === settings.indents && renames === settings.renames;
    this.#staying(() => (isCompared ? text.arrange(settings.layout, settings.context) : this.#compare(text.texts)));
  }

  #compare(texts: Texts): void {
    const { pins } = this.#aligner;
    this.#text = new DiffText(texts, this.#switches.settings, pins);
    const { added, removed, moved, indented, renamed } = this.#text.counts;
    const words = [
      ...(moved ? [`${plural(moved, "line")} moved`] : []),
      ...(indented ? [`${plural(indented, "line")} re-indented`] : []),
      ...(renamed ? [`${plural(renamed, "line")} ${renamed === 1 ? "differs" : "differ"} by renaming only`] : []),
      ...(pins.length ? [plural(pins.length, "pin")] : []),
    ];
    const pills = [el("span", "tk-pill tk-added", [`+${added}`]), el("span", "tk-pill tk-removed", [`−${removed}`])];
    this.#summary.replaceChildren(...(words.length ? [...pills, el("span", "tk-dim", [words.join(" · ")])] : []));
    this.#dress();
  }

  #dress(): void {
    const isTranslation = this.#text?.texts.isTranslation ?? false;
    this.#switches.show(this.isPicking, isTranslation);
    this.element.classList.toggle("tk-unified", this.#switches.settings.layout === "unified" && !isTranslation);
  }

  #say(message: string, isRefusal = false): void {
    this.#message.textContent = message;
    this.#message.hidden = !message;
    this.#message.classList.toggle("tk-refused", isRefusal);
  }

  // --- pins ------------------------------------------------------------------------------------------------------------

  #align(): void {
    if (!this.#text || this.#text.texts.isTranslation) return this.#say("there is nothing to align here", true);
    this.viewport.focus({ preventScroll: true });
    this.#answer(this.#aligner.press());
  }

  #answer({ words, isRefusal, pin }: Answer): void {
    this.#say(words, isRefusal);
    this.#dress();
    if (pin) {
      this.#keptPins.set(keyOf(this.#text!.texts), this.#aligner.text);
      this.#compare(this.#text!.texts);
      this.#goTo({ side: "right", line: pin.right });
      this.events.onChange();
    } else if (this.isPicking && !isRefusal) {
      // from the line that one is at, on the side that is asked for
      const { side } = this.#aligner;
      const row = this.#text!.rows[this.#rowOfCursor()];
      if (row && row.show !== Show.Fold && row[side] >= 0) this.#setCursor({ side, line: row[side] });
    }
  }

  #pick(row: Row, clicked: Side): void {
    this.#answer(this.#aligner.pick(row, this.#switches.settings.layout === "split" ? clicked : undefined));
  }

  #escape(): void {
    this.#say("");
    const wasPicking = this.isPicking;
    this.#aligner.leave();
    this.#dress();
    if (wasPicking) return;
    this.#name = "";
    this.#mark("");
    this.#setCursor(undefined);
  }

  // --- the cursor ------------------------------------------------------------------------------------------------------

  #setCursor(place: Place | undefined): void {
    this.#cursor = place;
    this.#showCursor();
    if (place) this.events.onLine(place.side, place.line);
  }

  #goTo(place: Place): void {
    this.reveal(place.side, place.line);
    this.#setCursor(place);
  }

  #showCursor(): void {
    const row = this.#cursor ? this.#text!.rowOf(this.#cursor) : -1;
    for (const [index, node] of this.#pane.live) {
      if (index === row) node.dataset.cursor = this.#cursor!.side;
      else delete node.dataset.cursor;
    }
  }

  /** The row under the cursor, else the first that is in view. */
  #rowOfCursor(): number {
    const row = this.#cursor ? this.#text!.rowOf(this.#cursor) : -1;
    return row >= 0 ? row : this.#pane.first;
  }

  /** To the next line; a fold on the way opens at the end that is reached. */
  #step(direction: 1 | -1): void {
    const text = this.#text!;
    const wanted = this.isPicking ? this.#aligner.side : (this.#cursor?.side ?? "right");
    const isPassed = (row: Row | undefined): boolean => row !== undefined && this.isPicking && row.show !== Show.Fold && row[wanted] < 0;
    let index = this.#rowOfCursor() + (this.#cursor ? direction : 0);
    while (isPassed(text.rows[index])) index += direction;
    const fold = text.rows[index];
    if (fold?.show === Show.Fold) {
      const count = text.rows.length;
      this.#staying(() => text.open(fold, direction === 1 ? "top" : "bottom"));
      if (direction === -1) index += text.rows.length - count;
    }
    const row = text.rows[index];
    if (!row) return;
    const side = row.shows !== "both" ? row.shows : row[wanted] >= 0 ? wanted : otherThan(wanted);
    this.#setCursor({ side, line: row[side] });
    this.#pane.show(index);
  }

  /** To the next or the previous name in the line under the cursor, or some columns aside where there is no cursor. */
  #sidestep(direction: 1 | -1): void {
    if (!this.#cursor) return this.#pane.slide(8 * direction);
    const { languages } = this.#text!.texts;
    const found = names(this.#text!.line(this.#cursor), languages[this.#cursor.side === "left" ? 0 : 1]).map(({ text }) => text);
    const different = [...new Set(found)];
    const name = different[different.indexOf(this.#name) + direction];
    if (name) {
      this.#name = name;
      return this.#mark(name);
    }
    const side = direction === 1 ? "right" : "left";
    const row = this.#text!.rows[this.#rowOfCursor()]!;
    if (side === this.#cursor.side || row[side] < 0 || row.shows !== "both") return;
    this.#name = "";
    this.#mark("");
    this.#setCursor({ side, line: row[side] });
  }

  #enter(): void {
    const text = this.#text!;
    const index = this.#rowOfCursor();
    if (this.isPicking) return this.#pick(text.rows[index]!, this.#aligner.side);
    const move = this.#cursor && text.moveAt(this.#cursor);
    if (!move) return this.#staying(() => text.toggle(index));
    const { side, line } = this.#cursor!;
    this.#goTo({ side: otherThan(side), line: move[otherThan(side)] + line - move[side] });
  }

  #click(event: MouseEvent): void {
    const target = event.target as HTMLElement;
    const node = target.closest<HTMLElement>("[data-row]");
    const row = node && this.#text?.rows[Number(node.dataset.row)];
    if (!row) return;
    // the button that was clicked may go with its row
    if (target.closest("button")) this.viewport.focus({ preventScroll: true });
    const link = target.closest<HTMLElement>(".tk-move-link");
    if (link) return this.#goTo({ side: link.dataset.side as Side, line: Number(link.dataset.line) });
    if (target.closest(".tk-note")) return this.events.onBlame(row.right);
    if (row.show === Show.Fold) {
      const end = target.closest<HTMLElement>("[data-end]")?.dataset.end as "top" | "bottom" | undefined;
      this.#text!.open(row, end ?? "all");
      return this.#lay();
    }
    const side = target.closest<HTMLElement>("[data-side]")?.dataset.side as Side | undefined;
    if (!side) return;
    if (this.isPicking) return this.#pick(row, side);
    // who has just marked some text wants to copy it
    if (!getSelection()!.isCollapsed) return;
    const line = this.#lineAt(target);
    this.#name = line ? nameAt(line, event.clientX) : "";
    this.#mark(this.#name);
    this.#setCursor({ side, line: row[side] });
  }

  // --- uses of a name --------------------------------------------------------------------------------------------------

  #hover(event: MouseEvent): void {
    const line = event.buttons ? undefined : this.#lineAt(event.target as HTMLElement);
    this.#mark((line && nameAt(line, event.clientX)) || this.#name);
  }

  #mark(name: string): void {
    if (name === this.#uses.name) return;
    this.#uses.name = name;
    this.#uses.mark(() => this.#shownLines());
  }

  #lineAt(target: HTMLElement): ShownLine | undefined {
    const code = target.closest("code[data-side]")?.querySelector<HTMLElement>(".tk-code");
    return code ? this.#shownLine(code) : undefined;
  }

  #shownLines(): ShownLine[] {
    return [...this.viewport.querySelectorAll<HTMLElement>("code[data-side] > .tk-code")].map((code) => this.#shownLine(code));
  }

  #shownLine(code: HTMLElement): ShownLine {
    const language = this.#text!.texts.languages[code.parentElement!.dataset.side === "left" ? 0 : 1];
    return { code, text: code.textContent!, language };
  }

  // --- rows ------------------------------------------------------------------------------------------------------------

  /** Change the rows, and keep the line under the cursor, or the one at the top of the view, where it is. */
  #staying(change: () => void): void {
    const own = this.#cursor ? this.#text!.rowOf(this.#cursor) : -1;
    const { first } = this.#pane;
    const index = this.#pane.isInView(own) ? own : this.#text!.rows.findIndex(({ show }, at) => at >= first && show !== Show.Fold);
    const row = this.#text!.rows[index];
    const offset = row ? this.#pane.offset(index) : 0;
    change();
    const side: Side = !row || row.shows === "left" || row.right < 0 ? "left" : "right";
    const now = row ? this.#text!.rowOf({ side, line: row[side] }) : -1;
    this.#lay(() => now >= 0 && this.#pane.scrollTo(now, offset));
  }

  /** Lay the rows out anew, and paint those that are in view after scrolling. */
  #lay(scroll: () => void = () => undefined): void {
    const { rows, widest } = this.#text!;
    this.element.style.setProperty("--tk-number", `${this.#numberWidth}px`);
    this.#pane.lay(rows.map(({ show }) => (show === Show.Fold ? FOLD_ROW : ROW)), widest + 2);
    this.#ruler.paint(this.#text!, this.#pane.tops, this.viewport.clientHeight);
    scroll();
    this.#pane.resize();
  }

  #row(index: number): HTMLElement {
    const row = this.#text!.rows[index]!;
    const found = this.#found;
    return rowElement(row, this.#text!, {
      layout: this.#switches.settings.layout,
      needle: found && row[found.place.side] === found.place.line ? found.needle : "",
      isSingle: this.element.classList.contains("tk-single"),
      isPinned: this.#aligner.pins.some(({ left, right }) => left === row.left && right === row.right),
      note: this.#isNoted ? ({ side, line }) => this.#notes[side][line] ?? "" : undefined,
      isLit: ({ side, line }) => this.#lit[side].has(line),
    });
  }

  #painted(): void {
    if (!this.#text) return;
    this.#showCursor();
    this.#uses.mark(() => this.#shownLines());
  }

  get #isNoted(): boolean {
    return this.#notes.left.length + this.#notes.right.length > 0;
  }

  get #numberWidth(): number {
    const { before, after } = this.#text!.texts;
    return Math.max(38, 10 + 7 * String(Math.max(before.length, after.length)).length);
  }

  get #codeWidth(): number {
    if (!this.#text) return 0;
    const gutter = this.#isNoted ? GUTTER : 0;
    const { clientWidth } = this.viewport;
    if (this.element.classList.contains("tk-single")) return clientWidth - this.#numberWidth - SIGN;
    if (this.element.classList.contains("tk-unified")) return clientWidth - 2 * this.#numberWidth - SIGN - gutter;
    return clientWidth / 2 - this.#numberWidth - SIGN - gutter;
  }
}

const otherThan = (side: Side): Side => (side === "left" ? "right" : "left");
const isEqual = (a: readonly string[], b: readonly string[]): boolean => a.length === b.length && a.every((item, index) => item === b[index]);
const keyOf = ({ labels, before, after }: Texts): string => [...labels, before.length, after.length].join("\0");

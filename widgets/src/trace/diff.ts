// SPDX-License-Identifier: Apache-2.0
// Two texts side by side or in one column: how they are shown, and what keys and clicks do in them.
import { el } from "../common/dom.ts";
import { focus } from "../common/keyboard.ts";
import type { Language } from "../common/syntax.ts";
import { Show } from "./diffalign.ts";
import { Aligner, type Answer } from "./diffaligner.ts";
import { Cursor } from "./diffcursor.ts";
import { DiffHead } from "./diffhead.ts";
import { Pane, ROW } from "./diffpane.ts";
import { rowElement } from "./diffrows.ts";
import { Ruler } from "./diffruler.ts";
import { Switches } from "./diffswitches.ts";
import { DiffText, type Origins, type Place, type Row, type Settings, type Side, type Texts } from "./difftext.ts";
import { Uses } from "./diffuses.ts";
import { type Binding, press } from "./keys.ts";

const FOLD_ROW = 24;
const SIGN = 16;
const GUTTER = 130;
/** So much takes a view of two columns, of some thirty characters each. */
const LEAST_WIDTH = 560;

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

export class DiffView {
  readonly element: HTMLElement;
  readonly #pane: Pane;
  readonly #ruler: Ruler;
  readonly #uses: Uses;
  readonly #cursor: Cursor;
  readonly #head = new DiffHead();
  readonly #switches = new Switches((changes) => this.#apply(changes), () => this.#align());
  readonly #aligner = new Aligner();
  #text: DiffText | undefined;
  /** The pins of texts that were shown before, and those that the address of the page came with. */
  readonly #keptPins = new Map<string, string>();
  #givenPins: string | undefined;
  #found: { place: Place; needle: string } | undefined;
  #lit: Record<Side, ReadonlySet<number>> = { left: new Set(), right: new Set() };
  #notes: Record<Side, readonly string[]> = { left: [], right: [] };

  constructor(
    signal: AbortSignal,
    private readonly events: DiffEvents,
  ) {
    this.#pane = new Pane({ element: (index) => this.#row(index), codeWidth: () => this.#codeWidth, painted: () => this.#painted() }, signal);
    this.#ruler = new Ruler((share) => this.#pane.jump(share), signal);
    this.#uses = new Uses(this.viewport, (side) => this.#text!.languageOf(side), signal);
    this.#cursor = new Cursor({
      pane: this.#pane,
      aligner: this.#aligner,
      uses: this.#uses,
      text: () => this.#text!,
      staying: (change) => this.#staying(change),
      onLine: events.onLine,
    });
    const body = el("div", "tk-diff-body", [this.viewport, this.#ruler.element]);
    this.element = el("div", "tk-diff", [...this.#head.elements, body, this.#pane.slider]);
    this.viewport.addEventListener("click", (event) => this.#click(event), { signal });
  }

  /** What has the focus when keys are for the rows. */
  get viewport(): HTMLElement {
    return this.#pane.viewport;
  }

  /** What switches the view, for whoever has a place for it. */
  get switches(): HTMLElement {
    return this.#switches.element;
  }

  /** The line that one is at. */
  get cursor(): Place | undefined {
    return this.#cursor.place;
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
    this.#givenPins = this.#found = this.#cursor.place = undefined;
    this.#uses.chosen = "";
    this.#lit = { left: new Set(), right: new Set() };
    this.#annotate({ left: [], right: [] });
    this.#head.name(labels, after === null ? undefined : sides);
    this.#head.say("");
    this.element.classList.toggle("tk-single", after === null);
    this.viewport.setAttribute("aria-label", labels.filter(Boolean).join(" and "));
    const [first] = this.#compare(texts).changes();
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
    const { clientWidth } = this.element;
    this.#set(this.#switches.read(words, clientWidth > 0 && clientWidth < LEAST_WIDTH));
  }

  /** Bring a line into view, open what hides it, and put the cursor on it. */
  reveal(side: Side, line: number): void {
    const place = { side, line };
    const row = this.#text?.reveal(place) ?? -1;
    if (row < 0) return;
    this.#cursor.place = place;
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

  // --- keys and clicks -------------------------------------------------------------------------------------------------

  /** The keys of the texts; the arrows and Enter are for whoever has the focus. */
  readonly keys: readonly Binding[] = [
    ["n p", "next, previous change", () => this.#leap(1), () => this.#leap(-1)],
    ["↑ ↓", "go by lines", () => this.#inRows(() => this.#cursor.step(-1)), () => this.#inRows(() => this.#cursor.step(1))],
    ["← →", "mark the uses of a name in the line, or look aside", () => this.#inRows(() => this.#cursor.sidestep(-1)), () => this.#inRows(() => this.#cursor.sidestep(1))],
    ["Enter", "open the fold, follow the moved block", () => this.#inRows(() => this.#enter())],
    ["e E", "open or close one fold, all folds", () => this.#fold((text) => text.toggle(this.#cursor.row)), () => this.#fold((text) => text.expand(!text.isExpanded))],
    ["u", "one column or two", () => this.#switches.toggle("unified")],
    ["w", "show re-indented lines as such", () => this.#switches.toggle("indents")],
    ["r", "fold lines that differ by renaming only", () => this.#switches.toggle("renames")],
    ["F7 a", "align: say which two lines belong together", () => this.#align()],
    ["Shift+F7", "take such a pin back", () => this.#answer(this.#aligner.takeBack(this.cursor))],
  ];

  /** Whether a key was for this view, which then did what it stands for. */
  key(event: KeyboardEvent): boolean {
    if (!this.#text) return false;
    return event.key === "Escape" ? this.#escape() : press(this.keys, event);
  }

  #inRows(act: () => void): boolean {
    const isThere = document.activeElement === this.viewport;
    if (isThere) act();
    return isThere;
  }

  #leap(direction: 1 | -1): void {
    this.#pane.leap(this.#text!.changes(), direction);
  }

  #fold(change: (text: DiffText) => void): void {
    this.#staying(() => change(this.#text!));
  }

  #enter(): void {
    const { row, counterpart } = this.#cursor;
    if (this.#aligner.isOn) this.#pick(this.#text!.rows[row]!, this.#aligner.side);
    else if (counterpart) this.#goTo(counterpart);
    else this.#fold((text) => text.toggle(row));
  }

  /** Leave what is begun, then what is said or marked, and the line that one is at. */
  #escape(): boolean {
    const wasPicking = this.#aligner.isOn;
    if (!wasPicking && !this.cursor && !this.#uses.chosen && !this.#head.isSpeaking) return false;
    this.#head.say("");
    this.#aligner.leave();
    this.#dress();
    if (wasPicking) return true;
    this.#uses.chosen = "";
    this.#cursor.set(undefined);
    return true;
  }

  #click(event: MouseEvent): void {
    const target = event.target as HTMLElement;
    const node = target.closest<HTMLElement>("[data-row]");
    const row = node && this.#text?.rows[Number(node.dataset.row)];
    if (!row) return;
    // the button that was clicked may go with its row
    if (target.closest("button")) focus(this.viewport);
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
    if (this.#aligner.isOn) return this.#pick(row, side);
    // who has just marked some text wants to copy it
    if (!getSelection()!.isCollapsed) return;
    this.#uses.chosen = this.#uses.at(target, event.clientX);
    this.#cursor.set({ side, line: row[side] });
  }

  #goTo(place: Place): void {
    this.reveal(place.side, place.line);
    this.#cursor.set(place);
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

  #compare(texts: Texts): DiffText {
    const { pins } = this.#aligner;
    const text = (this.#text = new DiffText(texts, this.#switches.settings, pins));
    this.#head.count(text.counts, pins.length);
    this.#dress();
    return text;
  }

  #dress(): void {
    const isTranslation = this.#text?.texts.isTranslation ?? false;
    this.#switches.show(this.#aligner.isOn, isTranslation);
    this.element.classList.toggle("tk-unified", this.#switches.settings.layout === "unified" && !isTranslation);
  }

  // --- pins ------------------------------------------------------------------------------------------------------------

  #align(): void {
    if (!this.#text || this.#text.texts.isTranslation) return this.#head.say("there is nothing to align here", true);
    focus(this.viewport);
    this.#answer(this.#aligner.press());
  }

  #answer({ words, isRefusal, pin }: Answer): void {
    const { texts, rows } = this.#text!;
    this.#head.say(words, isRefusal);
    this.#dress();
    if (pin) {
      this.#keptPins.set(keyOf(texts), this.#aligner.text);
      this.#compare(texts);
      this.#goTo({ side: "right", line: pin.right });
      this.events.onChange();
    } else if (this.#aligner.isOn && !isRefusal) {
      // from the line that one is at, on the side that is asked for
      const { side } = this.#aligner;
      const row = rows[this.#cursor.row];
      if (row && row.show !== Show.Fold && row[side] >= 0) this.#cursor.set({ side, line: row[side] });
    }
  }

  #pick(row: Row, clicked: Side): void {
    this.#answer(this.#aligner.pick(row, this.#switches.settings.layout === "split" ? clicked : undefined));
  }

  // --- rows ------------------------------------------------------------------------------------------------------------

  /** Change the rows, and keep the line under the cursor, or the one at the top of the view, where it is. */
  #staying(change: () => void): void {
    const own = this.cursor ? this.#text!.rowOf(this.cursor) : -1;
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
    this.#cursor.paint();
    this.#uses.mark();
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

const isEqual = (a: readonly string[], b: readonly string[]): boolean => a.length === b.length && a.every((item, index) => item === b[index]);
const keyOf = ({ labels, before, after }: Texts): string => [...labels, before.length, after.length].join("\0");

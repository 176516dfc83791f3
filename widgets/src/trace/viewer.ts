// SPDX-License-Identifier: Apache-2.0
// The viewer of a journal, the same in a page of its own and in a notebook: the list of steps at the side, and what the
// chosen one made of its text, or two steps, or the same step of two compiles beside each other.
import { copy } from "../common/copy.ts";
import { button, el, plural } from "../common/dom.ts";
import { keepFocus, keepKeys, makeFocusable } from "../common/keyboard.ts";
import { pairCards, stepCards } from "./cards.ts";
import { DiffView } from "./diff.ts";
import type { Side as TextSide } from "./difftext.ts";
import { FilterBar } from "./filterbar.ts";
import type { Filter } from "./filters.ts";
import { Finder } from "./finder.ts";
import { Header } from "./header.ts";
import { Help } from "./help.ts";
import type { Compile, Journal, Step } from "./journal.ts";
import { type Binding, press } from "./keys.ts";
import { read, written } from "./link.ts";
import { Links } from "./links.ts";
import { onPaper } from "./paper.ts";
import { keyOf, pairKey, pairRows, stepRows } from "./rows.ts";
import { Side } from "./side.ts";
import { State } from "./state.ts";
import { StepHead } from "./stephead.ts";
import type { Subject } from "./subject.ts";

export interface Host {
  /** Where keys are listened to: the panel, or the page if it is all there is. */
  keysOf: HTMLElement | Document;
  /** Called when what is shown has another address. */
  onPlace: (fragment: string) => void;
  /** What else stands in the header. */
  tools: HTMLElement[];
  /** Asks for the machine code, where it can be had. */
  askOn?: (() => void) | undefined;
}

const SHOWN_MS = 1600;

export class Viewer {
  readonly root: HTMLElement;
  readonly #state: State;
  /** What is shown of all this. */
  #subject: Subject | undefined;
  #isDrawing = false;
  #toasted: ReturnType<typeof setTimeout> | undefined;
  #since = 0;

  readonly #diff: DiffView;
  readonly #links: Links;
  readonly #finder: Finder;
  readonly #filters = new FilterBar((filter) => this.#narrow(filter));
  readonly #side: Side;
  readonly #body = el("div", "tk-trace-body");
  readonly #header: Header;
  readonly #head: StepHead;
  readonly #cards = el("div", "tk-cards");
  readonly #spoken = el("span", "tk-spoken", [], { role: "status" });
  readonly #toast = el("span", "tk-toast", [], { role: "status" });
  readonly #paper = el("div", "tk-print");
  readonly #help: Help;

  constructor(
    private readonly journal: Journal,
    private readonly host: Host,
    signal: AbortSignal,
  ) {
    this.#state = new State(journal);
    this.#diff = new DiffView(signal, {
      onLine: (side, line) => this.#link(side, line),
      onChange: () => this.#tell(),
      onBlame: (line) => this.#goToOrigin(line),
    });
    this.#links = new Links(journal, () => this.#drawLinks(), host.askOn, signal);
    this.#finder = new Finder(journal, this.#diff, (step) => this.#go(step), () => this.#search(), signal);
    this.#side = new Side(this.#body, (key) => this.#choose(key), (filter) => this.#narrow(filter), signal);
    const choices = {
      walk: (direction: 1 | -1) => this.#walk(direction, true),
      blame: () => this.#toggleBlame(),
      columns: () => this.#links.toggle(),
      mark: () => this.#mark(),
      copy: (side: "before" | "after") => void this.#copy(side),
    };
    this.#head = new StepHead(choices, this.#diff.switches);
    const tools = [this.#finder.hits, this.#finder.box, ...host.tools, button("?", "Keys and facts (?)", () => this.#help.toggle())];
    const kernels = {
      onKernel: (compile?: Compile) => this.#narrow({ compile: compile?.number, phase: undefined }),
      onOther: (compile?: Compile) => this.#move(() => this.#state.compareWith(compile)),
    };
    this.#header = new Header(journal, kernels, tools, signal);
    const fold = button("☰", "Fold the list away (s)", () => this.#side.fold(), "tk-plain");
    const nav = el("nav", "tk-bar-of-filters", [fold, this.#filters.tabs, this.#filters.badges], { "aria-label": "What is listed" });
    const main = [this.#head.element, this.#finder.strip, this.#cards, this.#diff.element, this.#links.columns, this.#links.bar];
    this.#body.append(this.#side.element, el("div", "tk-main", main));
    this.root = el("section", "tk-panel tk-trace", [this.#header.element, nav, this.#body, this.#spoken, this.#toast, this.#paper]);
    this.#help = new Help(this.root, { Passes: this.#keys, Texts: this.#diff.keys }, journal.runs);
    makeFocusable(this.root, -1);
    keepKeys(host.keysOf, (_, event) => this.#key(event), signal);
    keepFocus(this.root, () => this.#diff.viewport, signal);
    window.addEventListener("beforeprint", () => this.#layOutForPaper(), { signal });
  }

  // --- where one is ----------------------------------------------------------------------------------------------------

  /** Show a place, as a fragment says it; what it does not say is as it is when a page opens. */
  show(fragment: string): void {
    this.#since = performance.now();
    const place = read(fragment);
    this.#state.place = place;
    this.#finder.needle = place.q ?? "";
    this.#diff.state = place.d ?? "";
    if (this.#state.step) this.#links.turnTo(this.#state.step.compile);
    this.#links.state = place.m ?? "";
    this.#drawList();
    this.#draw();
    if (place.l !== undefined) this.#diff.reveal("right", place.l - 1);
    this.#tell();
  }

  /** Where one is, as a fragment that `show` understands. */
  get place(): string {
    const { cursor, state: d } = this.#diff;
    const l = cursor?.side === "right" ? cursor.line + 1 : undefined;
    return written({ ...this.#state.place, l, q: this.#finder.needle, d, m: this.#links.state });
  }

  #tell(): void {
    if (!this.#isDrawing) this.host.onPlace(this.place);
  }

  // --- going somewhere -------------------------------------------------------------------------------------------------

  /** Change where one is, and show that; a change that says `false` came nowhere. */
  #move(change: () => boolean | void): boolean {
    this.#since = performance.now();
    const { comparison } = this.#state;
    if (change() === false) return false;
    if (this.#state.comparison === comparison) this.#select();
    else this.#drawList();
    this.#draw();
    return true;
  }

  #go(step: Step): void {
    this.#move(() => this.#state.go(step));
  }

  #walk(direction: 1 | -1, eventfulOnly: boolean): void {
    this.#move(() => this.#state.walk(direction, eventfulOnly));
  }

  #choose(key: string): void {
    const { comparison, listed } = this.#state;
    const pair = comparison?.pairs.findIndex((_, index) => pairKey(index) === key) ?? -1;
    const step = listed.find((one) => keyOf(one) === key);
    if (pair >= 0) this.#move(() => this.#state.goToPair(pair));
    else if (step) this.#go(step);
  }

  #narrow(filter: Partial<Filter>): void {
    const hasMoved = this.#move(() => this.#state.narrow(filter));
    this.#drawList();
    if (!hasMoved) this.#tell();
  }

  #mark(): void {
    const { against } = this.#state;
    this.#state.mark();
    this.#drawList();
    if (this.#state.against === against) this.#drawToggles();
    else this.#draw();
  }

  /** Leave the comparison, of compiles or of steps. */
  #leave(): void {
    this.#move(() => this.#state.leave());
  }

  // --- the list --------------------------------------------------------------------------------------------------------

  #drawList(): void {
    const { choosable, filter, comparison, listed, marked } = this.#state;
    this.#filters.show(choosable, filter);
    this.#side.show(filter);
    this.root.classList.toggle("tk-comparing", comparison !== undefined);
    const marks = { holders: this.#finder.holders, marked, hasKernels: this.journal.compiles.length > 1 };
    this.#side.list.show(comparison ? pairRows(comparison) : stepRows(listed, marks));
    this.#select();
  }

  #select(): void {
    const { comparison, pair, step } = this.#state;
    this.#side.list.select(comparison ? pairKey(pair) : step ? keyOf(step) : "");
  }

  // --- what is shown ---------------------------------------------------------------------------------------------------

  #draw(): void {
    const subject = (this.#subject = this.#state.subject);
    if (!subject) return;
    const { step, words } = subject;
    const { comparison, filter } = this.#state;
    this.#isDrawing = true;
    this.#head.show(subject);
    this.#cards.replaceChildren(...this.#cardsOf(step));
    this.#diff.show(subject);
    this.#drawNotes(step);
    this.#spoken.textContent = `${step.number} ${step.name}: ${comparison ? words : step.words}`;
    this.#links.turnTo(step.compile);
    this.#drawLinks();
    this.#header.show(step.compile, filter.compile, comparison?.b);
    this.root.setAttribute("aria-label", `Passes of ${step.compile.name}`);
    if (this.#finder.look(step.compile)) this.#drawList();
    this.#finder.here(0);
    this.#isDrawing = false;
    this.root.dataset.shown = String(step.begin.index);
    requestAnimationFrame(() => {
      this.root.dataset.ms = (performance.now() - this.#since).toFixed(1);
    });
    this.#tell();
  }

  #cardsOf(step: Step): HTMLElement[] {
    const { comparison, pair, against, isEdit } = this.#state;
    const go = (one: Step): void => this.#go(one);
    if (comparison) return pairCards(comparison, pair, go, () => this.#move(() => this.#state.goToPair(comparison.parting)), () => this.#leave());
    return against ? [] : stepCards(step, isEdit, go, (toEdit) => this.#move(() => void (this.#state.wantsEdit = toEdit)));
  }

  #drawToggles(): void {
    this.#head.press(this.#state, this.#links);
  }

  // --- blame -----------------------------------------------------------------------------------------------------------

  #toggleBlame(): void {
    this.#state.isBlamed = !this.#state.isBlamed;
    this.#draw();
  }

  /** Beside each line who made it, or, of a person's own pass, which of its methods did. */
  #drawNotes({ visits }: Step): void {
    const { origins, comparison, against } = this.#state;
    if (origins) this.#diff.gutter(origins.map((origin) => (origin ? `${origin.number} ${origin.name}` : "")));
    else if (comparison) this.#diff.gutter(null);
    else this.#diff.gutter(visits?.after ?? null, against ? [] : visits?.before);
  }

  #goToOrigin(line: number): void {
    const origin = this.#state.origins?.[line];
    if (origin && origin !== this.#state.step) this.#go(origin);
  }

  // --- lines of every language -----------------------------------------------------------------------------------------

  #link(side: TextSide, line: number): void {
    const id = this.#subject?.ids[side === "left" ? 0 : 1];
    this.#links.choose(id ? { id, line } : undefined);
  }

  /** Light up what belongs with the chosen line, in the texts that are shown. */
  #drawLinks(): void {
    const [left, right] = this.#subject?.ids ?? [null, null];
    this.#diff.light("left", this.#links.lit(left));
    this.#diff.light("right", this.#links.lit(right));
    this.#diff.element.hidden = this.#diff.switches.hidden = this.#links.isOpen;
    this.#drawToggles();
    this.#tell();
  }

  // --- find, keys, copies ----------------------------------------------------------------------------------------------

  #search(): void {
    const { step } = this.#state;
    if (step && this.#finder.look(step.compile)) this.#drawList();
    this.#finder.here(0);
    this.#tell();
  }

  /** The keys of the passes; the arrows are for the list when it has the focus. */
  readonly #keys: readonly Binding[] = [
    ["j k", "next, previous pass that did something", () => this.#walk(1, true), () => this.#walk(-1, true)],
    ["J K", "next, previous pass of the list", () => this.#walk(1, false), () => this.#walk(-1, false)],
    ["[ ]", "previous, next phase", () => this.#walkPhases(-1), () => this.#walkPhases(1)],
    ["/", "find in this text and in all passes", () => this.#finder.box.select()],
    ["c", "list only passes that did something", () => this.#narrow({ isEventful: !this.#state.filter.isEventful })],
    ["b", "blame: which pass made each line", () => this.#toggleBlame()],
    ["m", "the lines of every language beside each other", () => this.#links.toggle()],
    ["x", "mark a pass, then compare another with it", () => this.#mark()],
    ["y Y", "copy the text after, before", () => void this.#copy("after"), () => void this.#copy("before")],
    ["s", "fold the list away", () => this.#side.fold()],
    ["< >", "make the list narrower, wider", () => this.#side.grow(-1), () => this.#side.grow(1)],
    ["?", "this help", () => this.#help.toggle()],
    ["Esc", "leave what is open", () => this.#escape()],
  ];

  #key(event: KeyboardEvent): boolean {
    if (event.key === "Escape" && this.#help.isOpen) {
      this.#help.toggle();
      return true;
    }
    return this.#diff.key(event) || press(this.#keys, event) || press(this.#listKeys, event);
  }

  readonly #listKeys: readonly Binding[] = [["↑ ↓", "", () => this.#walkList(-1), () => this.#walkList(1)]];

  #walkList(direction: 1 | -1): boolean {
    const isThere = document.activeElement === this.#side.list.element;
    if (isThere) this.#walk(direction, false);
    return isThere;
  }

  #walkPhases(direction: 1 | -1): void {
    this.#move(() => this.#state.walkPhases(direction));
  }

  #escape(): void {
    const { comparison, against, marked } = this.#state;
    if (this.#links.isOpen) this.#links.toggle();
    else if (comparison || against) this.#leave();
    else if (this.#finder.needle) this.#finder.clear();
    else if (marked) {
      this.#state.marked = undefined;
      this.#drawList();
      this.#drawToggles();
    }
  }

  async #copy(side: "before" | "after"): Promise<void> {
    if (!this.#subject) return;
    const { before, after } = this.#subject;
    const lines = side === "before" ? before : (after ?? before);
    const isCopied = await copy(lines.join("\n"));
    this.#toast.textContent = isCopied ? `copied ${plural(lines.length, "line")} ${side}` : "the browser refused to copy";
    clearTimeout(this.#toasted);
    this.#toasted = setTimeout(() => (this.#toast.textContent = ""), SHOWN_MS);
  }

  #layOutForPaper(): void {
    if (this.#subject) this.#paper.replaceChildren(...onPaper(this.#subject, this.#cards.children));
  }
}

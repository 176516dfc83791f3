// SPDX-License-Identifier: Apache-2.0
// The viewer of a journal, the same in a page of its own and in a notebook: the list of steps at the side, and what the
// chosen one made of its text, or two steps, or the same step of two compiles beside each other.
import { copy } from "../common/copy.ts";
import { button, el, group, plural, toggleButton } from "../common/dom.ts";
import { keepFocus, keepKeys, makeFocusable } from "../common/keyboard.ts";
import { compileCards, editCard, errorBox, figures, ownCard, partingCard, unprintable } from "./cards.ts";
import { DiffView } from "./diff.ts";
import type { Side as TextSide } from "./difftext.ts";
import { FilterBar } from "./filterbar.ts";
import { BADGES, EVERYTHING, type Filter, listed, step as stepFrom } from "./filters.ts";
import { Finder } from "./finder.ts";
import { Header } from "./header.ts";
import type { Compile, Journal, Step } from "./journal.ts";
import { helpDialog, KEYS } from "./keys.ts";
import { type Place, read, written } from "./link.ts";
import { Links } from "./links.ts";
import { onPaper } from "./paper.ts";
import { Blame, type Comparison, compared, opening } from "./queries.ts";
import { keyOf, pairKey, pairRows, stepRows } from "./rows.ts";
import { Side } from "./side.ts";
import { ofPair, ofStep, type Subject } from "./subject.ts";

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
  readonly #steps: readonly Step[];
  readonly #blames = new Map<Compile, Blame>();
  #filter: Filter = EVERYTHING;
  #step: Step | undefined;
  /** The step that the shown one is compared with, instead of what it was given. */
  #against: Step | undefined;
  #marked: Step | undefined;
  #comparison: Comparison | undefined;
  /** What is shown of all this. */
  #subject: Subject | undefined;
  /** Which pair of the comparison is shown. */
  #pair = 0;
  #isBlamed = false;
  /** Whether a step whose source was edited shows what was edited. */
  #isEdit = true;
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
  readonly #name = el("span", "tk-current");
  readonly #balance = el("span", "tk-balance");
  readonly #word = el("span", "tk-dim tk-what");
  readonly #blame = toggleButton("Blame", "Which pass made each line (b)", () => this.#toggleBlame());
  readonly #mark = toggleButton("Mark", "", () => this.#compareMarked());
  readonly #columns = toggleButton("Lines", "The lines of every language beside each other (m)", () => this.#links.toggle());
  readonly #cards = el("div", "tk-cards");
  readonly #spoken = el("span", "tk-spoken", [], { role: "status" });
  readonly #toast = el("span", "tk-toast", [], { role: "status" });
  readonly #paper = el("div", "tk-print");
  #help: HTMLElement | undefined;

  constructor(
    private readonly journal: Journal,
    private readonly host: Host,
    signal: AbortSignal,
  ) {
    this.#steps = journal.steps;
    this.#diff = new DiffView(signal, {
      onLine: (side, line) => this.#link(side, line),
      onChange: () => this.#tell(),
      onBlame: (line) => this.#goToOrigin(line),
    });
    this.#links = new Links(journal, () => this.#drawLinks(), host.askOn, signal);
    this.#finder = new Finder(journal, this.#diff, (step) => this.#go(step), () => this.#search(), signal);
    this.#side = new Side(this.#body, (key) => this.#choose(key), (filter) => this.#narrow(filter), signal);
    const tools = [this.#finder.hits, this.#finder.box, ...host.tools, button("?", "Keys and facts (?)", () => this.#toggleHelp())];
    const choices = {
      onKernel: (compile?: Compile) => this.#narrow({ compile: compile?.number, phase: undefined }),
      onOther: (compile?: Compile) => this.#compareWith(compile),
    };
    this.#header = new Header(journal, choices, tools, signal);
    this.#body.append(this.#side.element, this.#main());
    this.root = el("section", "tk-panel tk-trace", [this.#header.element, this.#nav(), this.#body, this.#spoken, this.#toast, this.#paper]);
    makeFocusable(this.root, -1);
    keepKeys(host.keysOf, (key, event) => this.#key(key, event), signal);
    keepFocus(this.root, () => this.#diff.viewport, signal);
    window.addEventListener("beforeprint", () => this.#layOutForPaper(), { signal });
  }

  // --- where one is ----------------------------------------------------------------------------------------------------

  /** Show a place, as a fragment says it; what it does not say is as it is when a page opens. */
  show(fragment: string): void {
    this.#since = performance.now();
    const place = read(fragment);
    const find = (p: number | undefined): Step | undefined => this.#steps.find((step) => step.begin.index === p && this.#runOf(step) === (place.run ?? 0));
    const badge = BADGES.find(({ name }) => name === place.s)?.name;
    this.#filter = { ...EVERYTHING, compile: this.journal.compiles[place.k ?? -1]?.number, phase: place.t, badge };
    this.#against = find(place.x);
    this.#isBlamed = place.b ?? false;
    this.#finder.needle = place.q ?? "";
    this.#diff.state = place.d ?? "";
    this.#step = find(place.p) ?? opening(this.#listed) ?? this.#steps[0];
    const [a, b] = (place.ab ?? []).map((number) => this.journal.compiles[number]);
    this.#compare(a, b, this.#step);
    if (this.#step) this.#links.turnTo(this.#step.compile);
    this.#links.state = place.m ?? "";
    this.#drawFilters();
    this.#drawList();
    this.#draw();
    if (place.l !== undefined) this.#diff.reveal("right", place.l - 1);
    this.#tell();
  }

  /** Where one is, as a fragment that `show` understands. */
  get place(): string {
    const { cursor, state } = this.#diff;
    const { compile, phase, badge } = this.#filter;
    const place: Place = { q: this.#finder.needle, b: this.#isBlamed, k: compile, t: phase, s: badge, d: state, m: this.#links.state };
    if (this.#step) place.p = this.#step.begin.index;
    if (this.#step && this.#runOf(this.#step)) place.run = this.#runOf(this.#step);
    if (this.#against) place.x = this.#against.begin.index;
    if (cursor?.side === "right") place.l = cursor.line + 1;
    if (this.#comparison) place.ab = [this.#comparison.a.number, this.#comparison.b.number];
    return written(place);
  }

  #runOf(step: Step): number {
    return this.journal.runs.indexOf(step.compile.run);
  }

  #tell(): void {
    if (!this.#isDrawing) this.host.onPlace(this.place);
  }

  // --- parts -----------------------------------------------------------------------------------------------------------

  #nav(): HTMLElement {
    return el("nav", "tk-bar-of-filters", [button("☰", "Fold the list away (s)", () => this.#side.fold(), "tk-plain"), this.#filters.tabs, this.#filters.badges]);
  }

  #main(): HTMLElement {
    const stepper = [
      button("‹", "Previous changed pass (k)", () => this.#walk(-1, true), ""),
      this.#name,
      button("›", "Next changed pass (j)", () => this.#walk(1, true), ""),
    ];
    const copies = [
      el("span", "tk-copy", ["Copy"], { "aria-hidden": "true" }),
      button("before", "Copy the text before (Y)", () => this.#copy("before"), ""),
      button("after", "Copy the text after (y)", () => this.#copy("after"), ""),
    ];
    const head = el("div", "tk-main-head", [
      group("Passes", stepper, "tk-stepper"),
      this.#balance,
      this.#word,
      el("span", "tk-tools", [this.#diff.switches, group("What else is said", [this.#blame, this.#columns, this.#mark]), group("Copy", copies)]),
    ]);
    return el("div", "tk-main", [head, this.#finder.strip, this.#cards, this.#diff.element, this.#links.columns, this.#links.bar]);
  }

  // --- the list --------------------------------------------------------------------------------------------------------

  get #listed(): Step[] {
    return listed(this.#steps, this.#filter);
  }

  #narrow(filter: Partial<Filter>): void {
    this.#filter = { ...this.#filter, ...filter };
    this.#drawFilters();
    this.#drawList();
    const shown = this.#listed;
    if (!this.#comparison && shown[0] && this.#step && !shown.includes(this.#step)) this.#go(shown[0]);
    else this.#tell();
  }

  #drawFilters(): void {
    const { compile } = this.#filter;
    this.#filters.show(compile === undefined ? this.#steps : this.journal.compiles[compile]!.steps, this.#filter);
    this.#side.show(this.#filter);
  }

  #drawList(): void {
    const isComparing = this.#comparison !== undefined;
    this.root.classList.toggle("tk-comparing", isComparing);
    this.#blame.hidden = this.#mark.hidden = isComparing;
    const marks = { holders: this.#finder.holders, marked: this.#marked, hasKernels: this.journal.compiles.length > 1 };
    this.#side.list.show(this.#comparison ? pairRows(this.#comparison) : stepRows(this.#listed, marks));
    this.#select();
  }

  #select(): void {
    this.#side.list.select(this.#comparison ? pairKey(this.#pair) : this.#step ? keyOf(this.#step) : "");
  }

  #choose(key: string): void {
    const pair = (this.#comparison?.pairs ?? []).findIndex((_, index) => pairKey(index) === key);
    const step = this.#steps.find((one) => keyOf(one) === key);
    if (pair >= 0) this.#goToPair(pair);
    else if (step) this.#go(step);
  }

  // --- walking ---------------------------------------------------------------------------------------------------------

  #go(step: Step): void {
    this.#since = performance.now();
    if (this.#comparison) this.#endComparison();
    this.#step = step;
    this.#against = undefined;
    this.#isEdit = true;
    this.#select();
    this.#draw();
  }

  #walk(direction: 1 | -1, eventfulOnly: boolean): void {
    if (this.#comparison) {
      this.#walkPairs(direction, eventfulOnly);
      return;
    }
    if (!this.#step) return;
    const next = stepFrom(this.#listed, this.#step, direction, eventfulOnly);
    if (next !== this.#step) this.#go(next);
  }

  /** To the first step of the next phase in a direction. */
  #walkPhases(direction: 1 | -1): void {
    const from = this.#step;
    if (!from || this.#comparison) return;
    const isIn = (step: Step, of: Step): boolean => step.phase === of.phase && step.compile === of.compile;
    const shown = this.#listed;
    const next = stepFrom(shown.filter((step) => !isIn(step, from)), from, direction, false);
    const first = shown.find((step) => isIn(step, next));
    if (next !== from && first) this.#go(first);
  }

  // --- a step ----------------------------------------------------------------------------------------------------------

  #draw(): void {
    const step = this.#step;
    if (!step) {
      this.#name.textContent = "nothing was traced yet";
      return;
    }
    this.#isDrawing = true;
    this.#subject = this.#comparison
      ? ofPair(this.journal, this.#comparison, this.#comparison.pairs[this.#pair]!)
      : ofStep(this.journal, step, this.#against, this.#showsEdit(step));
    this.#drawSubject(this.#subject);
    this.#drawMark();
    this.#links.turnTo(step.compile);
    this.#drawLinks();
    this.#header.show(step.compile, this.#filter.compile, this.#comparison?.b);
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

  #drawSubject({ step, words, added, removed, ...texts }: Subject): void {
    this.#name.replaceChildren(el("b", "", [step.number]), ` ${step.name}`);
    this.#name.title = step.name;
    this.#word.title = this.#word.textContent = words;
    const pills = [el("span", "tk-pill tk-added", [`+${added}`]), el("span", "tk-pill tk-removed", [`−${removed}`])];
    this.#balance.replaceChildren(...(added || removed ? pills : []));
    this.#cards.replaceChildren(...(this.#comparison ? this.#cardsOfPair(this.#comparison) : this.#against ? [] : this.#cardsOf(step)));
    this.#diff.show(texts);
    this.#drawBlame(step);
    this.#spoken.textContent = `${step.number} ${step.name}: ${this.#comparison ? words : step.words}`;
  }

  #cardsOf(step: Step): HTMLElement[] {
    const isLast = step === step.compile.steps.at(-1);
    const cards = [errorBox(step, (culprit) => this.#go(culprit)), ownCard(step), unprintable(step), editCard(step), figures(step), ...(isLast ? compileCards(step.compile) : [])];
    if (step.isEdited) {
      const choice = (words: string, isEdit: boolean): HTMLElement => {
        const node = toggleButton(words, words, () => {
          this.#isEdit = isEdit;
          this.#draw();
        });
        node.setAttribute("aria-pressed", String(this.#isEdit === isEdit));
        return node;
      };
      cards.push(el("div", "tk-card", [choice("Generated → compiled", true), choice("The program → generated", false)]));
    }
    return cards.filter((card) => card !== undefined);
  }

  #showsEdit(step: Step): boolean {
    return !this.#against && this.#isEdit && step.isEdited;
  }

  // --- two steps -------------------------------------------------------------------------------------------------------

  /** Mark the shown step; if another one is marked, compare with that. */
  #compareMarked(): void {
    if (!this.#step || this.#comparison) return;
    if (this.#marked && this.#marked !== this.#step) {
      this.#against = this.#against ? undefined : this.#marked;
      this.#draw();
      return;
    }
    this.#marked = this.#marked ? undefined : this.#step;
    this.#drawList();
    this.#drawMark();
  }

  #drawMark(): void {
    const marked = this.#marked;
    const words = !marked ? "Mark" : marked === this.#step ? "Marked" : this.#against ? "Compared" : `Compare with ${marked.number}`;
    this.#mark.textContent = words;
    this.#mark.title = marked ? `Marked: ${marked.number} ${marked.name} (x)` : "Mark this pass, to compare another with it (x)";
    this.#mark.setAttribute("aria-label", this.#mark.title);
    this.#mark.setAttribute("aria-pressed", String(marked !== undefined));
  }

  // --- two compiles ----------------------------------------------------------------------------------------------------

  /** Set two compiles beside each other: at a step of theirs, else where they part. */
  #compare(a: Compile | undefined, b: Compile | undefined, at?: Step): void {
    this.#comparison = a && b && a !== b ? compared(a, b) : undefined;
    if (!this.#comparison) return;
    const { pairs, parting } = this.#comparison;
    const own = pairs.findIndex((pair) => at && (pair.a === at || pair.b === at));
    this.#pair = own >= 0 ? own : Math.max(parting, 0);
    this.#step = pairs[this.#pair]?.b ?? pairs[this.#pair]?.a ?? this.#step;
    this.#against = undefined;
  }

  #compareWith(other: Compile | undefined): void {
    this.#since = performance.now();
    this.#compare(this.#comparison?.a ?? this.#step?.compile, other);
    this.#drawList();
    this.#draw();
  }

  #endComparison(): void {
    this.#compare(undefined, undefined);
    this.#drawList();
  }

  #goToPair(at: number): void {
    const { a, b } = this.#comparison!.pairs[at]!;
    this.#since = performance.now();
    this.#pair = at;
    this.#step = b ?? a;
    this.#select();
    this.#draw();
  }

  #walkPairs(direction: 1 | -1, otherOnly: boolean): void {
    const { pairs } = this.#comparison!;
    let at = this.#pair + direction;
    while (pairs[at] && otherOnly && pairs[at]!.isSame) at += direction;
    if (pairs[at]) this.#goToPair(at);
  }

  #cardsOfPair({ pairs, parting }: Comparison): HTMLElement[] {
    const { a, b } = pairs[this.#pair]!;
    const broken = [a, b].filter((one) => one?.isBroken).map((one) => errorBox(one!, (culprit) => this.#go(culprit))!);
    return [partingCard(pairs[parting], () => this.#goToPair(parting), () => this.#leave()), ...broken];
  }

  /** Leave the comparison, of compiles or of steps. */
  #leave(): void {
    if (this.#comparison) this.#endComparison();
    this.#against = undefined;
    this.#draw();
  }

  // --- blame -----------------------------------------------------------------------------------------------------------

  #toggleBlame(): void {
    this.#isBlamed = !this.#isBlamed;
    this.#draw();
  }

  #origins(step: Step): readonly (Step | undefined)[] {
    let blame = this.#blames.get(step.compile);
    if (!blame) this.#blames.set(step.compile, (blame = new Blame(this.journal, step.compile)));
    return blame.of(step);
  }

  /** Beside each line who made it, or, of a person's own pass, which of its methods did. */
  #drawBlame(step: Step): void {
    this.#blame.setAttribute("aria-pressed", String(this.#isBlamed));
    if (this.#comparison) return this.#diff.gutter(null);
    if (this.#isBlamed && !this.#showsEdit(step)) return this.#diff.gutter(this.#origins(step).map((origin) => (origin ? `${origin.number} ${origin.name}` : "")));
    this.#diff.gutter(step.visits?.after ?? null, this.#against ? [] : step.visits?.before);
  }

  #goToOrigin(line: number): void {
    const origin = this.#isBlamed && this.#step && this.#origins(this.#step)[line];
    if (origin && origin !== this.#step) this.#go(origin);
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
    this.#columns.hidden = !this.#links.isKnown;
    this.#columns.setAttribute("aria-pressed", String(this.#links.isOpen));
    this.#tell();
  }

  // --- find, keys, help, copies ----------------------------------------------------------------------------------------

  #search(): void {
    if (this.#step && this.#finder.look(this.#step.compile)) this.#drawList();
    this.#finder.here(0);
    this.#tell();
  }

  #key(key: string, event: KeyboardEvent): boolean {
    const actions: Record<string, () => void> = {
      j: () => this.#walk(1, true),
      k: () => this.#walk(-1, true),
      J: () => this.#walk(1, false),
      K: () => this.#walk(-1, false),
      "[": () => this.#walkPhases(-1),
      "]": () => this.#walkPhases(1),
      c: () => this.#narrow({ isEventful: !this.#filter.isEventful }),
      b: () => this.#toggleBlame(),
      m: () => this.#links.toggle(),
      x: () => this.#compareMarked(),
      y: () => this.#copy("after"),
      Y: () => this.#copy("before"),
      s: () => this.#side.fold(),
      "<": () => this.#side.grow(-1),
      ">": () => this.#side.grow(1),
      "/": () => this.#finder.box.select(),
      "?": () => this.#toggleHelp(),
    };
    if (document.activeElement === this.#side.list.element) {
      actions.ArrowDown = () => this.#walk(1, false);
      actions.ArrowUp = () => this.#walk(-1, false);
    }
    if (this.#help) actions.Escape = () => this.#toggleHelp();
    if (actions[key]) actions[key]();
    else if (this.#diff.key(key, event)) return true;
    else if (key === "Escape") this.#escape();
    else return false;
    return true;
  }

  #escape(): void {
    if (this.#links.isOpen) this.#links.toggle();
    else if (this.#comparison || this.#against) this.#leave();
    else if (this.#finder.needle) this.#finder.clear();
    else if (this.#marked) {
      this.#marked = undefined;
      this.#drawList();
      this.#drawMark();
    }
  }

  #toggleHelp(): void {
    if (this.#help) {
      this.#help.remove();
      this.#help = undefined;
      this.#diff.viewport.focus({ preventScroll: true });
      return;
    }
    this.#help = helpDialog({ Passes: KEYS, Texts: this.#diff.keys }, this.journal.runs, () => this.#toggleHelp());
    this.root.append(this.#help);
    this.#help.querySelector("button")!.focus();
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

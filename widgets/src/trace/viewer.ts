// SPDX-License-Identifier: Apache-2.0
// The viewer of a journal, the same in a page of its own and in a notebook: the list of steps at the side, and what the
// chosen one made of its text, or two steps, or the same step of two compiles beside each other.
import { copy } from "../common/copy.ts";
import { button, el, milliseconds, plural, searchBox } from "../common/dom.ts";
import { keepFocus, keepKeys, makeFocusable } from "../common/keyboard.ts";
import { recall, remember } from "../common/remember.ts";
import type { Language } from "../common/syntax.ts";
import { hunks } from "../common/textdiff.ts";
import { editCard, errorBox, figures } from "./cards.ts";
import { DiffView } from "./diff.ts";
import type { Side } from "./difftext.ts";
import { BADGES, badgeOf, EVERYTHING, type Filter, listed, phases, step as stepFrom } from "./filters.ts";
import { basePhase, type Compile, type Journal, LANGUAGES, type Step } from "./journal.ts";
import { helpDialog, KEYS } from "./keys.ts";
import { type Place, read, written } from "./link.ts";
import { heading, keyOf, List, pairRow, type Row, stepRow } from "./list.ts";
import { beside, Blame, find, type Found, opening, type Pair } from "./queries.ts";

export interface Host {
  /** Where keys are listened to: the panel, or the page if it is all there is. */
  keysOf: HTMLElement | Document;
  /** Called when what is shown has another address. */
  onPlace: (fragment: string) => void;
  /** What else stands in the header. */
  tools: HTMLElement[];
}

/** Two compiles beside each other. */
interface Comparison {
  a: Compile;
  b: Compile;
  pairs: Pair[];
  at: number;
}

const NARROWEST = 150;
const WIDEST = 600;
const PRINTED_CONTEXT = 3;
let viewers = 0;

export class Viewer {
  readonly root: HTMLElement;
  readonly #list: List;
  readonly #diff: DiffView;
  readonly #blames = new Map<Compile, Blame>();
  readonly #steps: readonly Step[];
  #filter: Filter = EVERYTHING;
  #step: Step | undefined;
  /** The step that the shown one is compared with, instead of what it was given. */
  #against: Step | undefined;
  #marked: Step | undefined;
  #comparison: Comparison | undefined;
  #isDrawing = false;
  #isBlamed = false;
  /** Whether the shown step of code generation shows what was edited in the generated source. */
  #isEdit = true;
  #found: Found | undefined;
  #since = 0;

  readonly #kernels = el("select", "tk-select", [], { "aria-label": "Kernel" });
  readonly #others = el("select", "tk-select", [], { "aria-label": "Compare with another compile" });
  readonly #facts = el("span", "tk-dim tk-facts");
  readonly #tabs = el("div", "tk-tabs", [], { role: "tablist", "aria-label": "Phases" });
  readonly #badges = el("div", "tk-badges", [], { role: "group", "aria-label": "Filter by what became of a step" });
  readonly #nameFilter = searchBox("Filter passes");
  readonly #body = el("div", "tk-trace-body");
  readonly #name = el("span", "tk-current");
  readonly #word = el("span", "tk-dim tk-what");
  readonly #cards = el("div", "tk-cards");
  readonly #strip = el("div", "tk-strip", [], { role: "status" });
  readonly #hits = el("span", "tk-dim tk-hits");
  readonly #find = searchBox("Find");
  readonly #spoken = el("span", "tk-spoken", [], { role: "status" });
  readonly #toast = el("span", "tk-toast", [], { role: "status" });
  readonly #print = el("div", "tk-print");
  readonly #blameToggle: HTMLButtonElement;
  readonly #mark: HTMLButtonElement;
  readonly #changedOnly: HTMLButtonElement;
  #help: HTMLElement | undefined;

  constructor(
    private readonly journal: Journal,
    private readonly host: Host,
    signal: AbortSignal,
  ) {
    this.#steps = journal.steps;
    this.#list = new List(`tk-${++viewers}`, (key) => this.#choose(key), signal);
    this.#diff = new DiffView(signal, {
      onLine: (side, line) => this.#onLine(side, line),
      onChange: () => this.#tell(),
      onBlame: (line) => this.#goToOrigin(line),
    });
    this.#changedOnly = toggle("Changed only", "List only passes that did something (c)", () => this.#toggleChanged());
    this.#blameToggle = toggle("Blame", "Which pass made each line (b)", () => this.#toggleBlame());
    this.#mark = button("Mark", "Mark this pass, to compare another with it (x)", () => this.#compareMarked());
    this.root = el("section", "tk-panel tk-trace", [
      this.#header(),
      el("nav", "tk-bar-of-filters", [this.#tabs, this.#badges]),
      this.#body,
      this.#spoken,
      this.#toast,
      this.#print,
    ]);
    this.#body.append(this.#side(signal), this.#main());
    makeFocusable(this.root, -1);
    keepKeys(host.keysOf, (key, event) => this.#key(key, event), signal);
    keepFocus(this.root, () => this.#diff.viewport, signal);
    this.#find.addEventListener("input", () => this.#search(), { signal });
    this.#find.addEventListener("keydown", (event) => this.#findKey(event), { signal });
    this.#nameFilter.addEventListener("input", () => this.#narrow({ name: this.#nameFilter.value }), { signal });
    this.#kernels.addEventListener("change", () => this.#narrow({ compile: this.#kernels.value ? Number(this.#kernels.value) : undefined, phase: undefined }), { signal });
    this.#others.addEventListener("change", () => this.#compareWith(this.#others.value), { signal });
    window.addEventListener("beforeprint", () => this.#layOutForPrint(), { signal });
  }

  /** Show a place, as a fragment says it; what it does not say is as it is when a page opens. */
  show(fragment: string): void {
    const place = read(fragment);
    const find = (p: number | undefined): Step | undefined =>
      this.#steps.find((step) => step.begin.index === p && this.#runOf(step) === (place.run ?? 0));
    const badge = BADGES.find(({ name }) => name === place.s)?.name;
    this.#filter = { ...EVERYTHING, compile: this.journal.compiles[place.k ?? -1]?.number, phase: place.t, badge };
    this.#against = find(place.x);
    this.#isBlamed = place.b ?? false;
    this.#find.value = place.q ?? "";
    this.#diff.state = place.d ?? "";
    this.#step = find(place.p) ?? opening(listed(this.#steps, this.#filter)) ?? this.#steps[0];
    const [a, b] = (place.ab ?? []).map((number) => this.journal.compiles[number]);
    this.#comparison = a && b ? this.#compared(a, b) : undefined;
    this.#found = this.#needle ? this.#findAll() : undefined;
    this.#drawFilters();
    this.#drawList();
    this.#draw();
    if (place.l !== undefined) this.#diff.reveal("right", place.l - 1);
    this.#tell();
  }

  /** Where one is, as a fragment that `show` understands. */
  get place(): string {
    const step = this.#step;
    const { cursor, state } = this.#diff;
    const place: Place = { q: this.#needle, b: this.#isBlamed, t: this.#filter.phase, k: this.#filter.compile, s: this.#filter.badge, d: state };
    if (step) place.p = step.begin.index;
    if (step && this.#runOf(step)) place.run = this.#runOf(step);
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

  #header(): HTMLElement {
    const { compiles, runs } = this.journal;
    const script = runs.find(({ line }) => line.script)?.line.script ?? "";
    const one = compiles.length === 1 ? el("b", "tk-kernel", [compiles[0]!.name], { title: compiles[0]!.name }) : this.#kernels;
    const option = (compile: Compile): string => [compile.name, compile.line.target, compile.line.run > 1 ? `run ${compile.line.run}` : ""].filter(Boolean).join(" · ");
    this.#kernels.append(el("option", "", [`All ${compiles.length} kernels`], { value: "" }));
    this.#others.append(el("option", "", ["Compare with"], { value: "" }));
    for (const compile of compiles) {
      this.#kernels.append(el("option", "", [option(compile)], { value: String(compile.number) }));
      this.#others.append(el("option", "", [option(compile)], { value: String(compile.number) }));
    }
    for (const select of [this.#kernels, this.#others]) makeFocusable(select);
    return el("header", "", [
      el("span", "tk-title", [script && script !== compiles[0]?.name ? script : "Passes"]),
      one,
      this.#facts,
      ...(compiles.length > 1 ? [this.#others] : []),
      el("span", "tk-grow"),
      this.#hits,
      this.#find,
      ...this.host.tools,
      button("?", "Keys and facts (?)", () => this.#toggleHelp()),
    ]);
  }

  #side(signal: AbortSignal): HTMLElement {
    const handle = el("div", "tk-handle", [], { role: "separator", "aria-orientation": "vertical", "aria-label": "Width of the list" });
    const width = Number(recall("list-width"));
    if (width) this.#widen(width);
    handle.addEventListener(
      "pointerdown",
      (event) => {
        handle.setPointerCapture(event.pointerId);
        const left = this.#body.getBoundingClientRect().left;
        const move = (moved: PointerEvent): void => this.#widen(moved.clientX - left);
        handle.addEventListener("pointermove", move);
        handle.addEventListener("pointerup", () => handle.removeEventListener("pointermove", move), { once: true });
        event.preventDefault();
      },
      { signal },
    );
    return el("aside", "tk-side", [el("div", "tk-side-head", [this.#nameFilter, this.#changedOnly]), this.#list.element, handle]);
  }

  #widen(pixels: number): void {
    const width = Math.round(Math.min(WIDEST, Math.max(NARROWEST, pixels)));
    this.#body.style.setProperty("--tk-side", `${width}px`);
    remember("list-width", String(width));
  }

  #foldSide(): void {
    this.#body.classList.toggle("tk-no-side");
  }

  #main(): HTMLElement {
    const stepper = el("span", "tk-stepper", [
      button("‹", "Previous changed pass (k)", () => this.#walk(-1, true), ""),
      this.#name,
      button("›", "Next changed pass (j)", () => this.#walk(1, true), ""),
    ]);
    return el("div", "tk-main", [
      el("div", "tk-main-head", [
        button("☰", "Fold the list away (s)", () => this.#foldSide(), "tk-button tk-fold-side"),
        stepper,
        this.#word,
        el("span", "tk-grow"),
        ...this.#diff.switches,
        this.#blameToggle,
        this.#mark,
        button("Copy before", "Copy the text before (Y)", () => this.#copy("before")),
        button("Copy after", "Copy the text after (y)", () => this.#copy("after")),
      ]),
      this.#strip,
      this.#cards,
      this.#diff.element,
    ]);
  }

  // --- the list --------------------------------------------------------------------------------------------------------

  /** The steps of the kernels that are listed, whatever else is filtered. */
  get #scope(): readonly Step[] {
    const { compile } = this.#filter;
    return compile === undefined ? this.#steps : this.journal.compiles[compile]!.steps;
  }

  get #listed(): Step[] {
    return listed(this.#steps, this.#filter);
  }

  #narrow(filter: Partial<Filter>): void {
    this.#filter = { ...this.#filter, ...filter };
    this.#drawFilters();
    this.#drawList();
    const shown = this.#listed;
    if (this.#step && shown.length && !shown.includes(this.#step)) this.#go(shown[0]!);
    else this.#draw();
  }

  #drawFilters(): void {
    const { compile, phase, badge } = this.#filter;
    this.#kernels.value = compile === undefined ? "" : String(compile);
    const tab = (name: string | undefined, count: number): HTMLElement => {
      const isSelected = name === phase;
      const words = name ?? "All";
      const node = button(words, name === undefined ? "All phases" : `Phase ${name}`, () => this.#narrow({ phase: name }), "tk-tab");
      node.setAttribute("role", "tab");
      node.setAttribute("aria-selected", String(isSelected));
      node.append(el("span", "tk-tab-count", [String(count)]));
      return node;
    };
    const tabs = [...phases(this.#scope)].map(([name, count]) => tab(name, count));
    this.#tabs.replaceChildren(tab(undefined, this.#scope.length), ...tabs);
    const inPhase = this.#scope.filter((step) => phase === undefined || step.phase === phase);
    const badges = BADGES.map(({ name, sign, word, what }) => {
      const count = inPhase.filter((step) => badgeOf(step) === name).length;
      const node = button("", `${what}: ${count}`, () => this.#narrow({ badge: badge === name ? undefined : name }), `tk-badge tk-is-${name}`);
      node.append(el("i", "tk-sign-of", [sign], { "aria-hidden": "true" }), el("b", "", [String(count)]), ` ${word}`);
      node.setAttribute("aria-pressed", String(badge === name));
      node.hidden = count === 0 && badge !== name && name !== "changed";
      return node;
    });
    const all = button("", "All steps", () => this.#narrow({ badge: undefined }), "tk-badge");
    all.append(el("b", "", [String(inPhase.length)]), ` ${inPhase.length === 1 ? "step" : "steps"}`);
    all.setAttribute("aria-pressed", "false");
    this.#badges.replaceChildren(all, ...badges);
    this.#changedOnly.setAttribute("aria-pressed", String(this.#filter.isEventful));
    if (this.#nameFilter.value !== this.#filter.name) this.#nameFilter.value = this.#filter.name;
  }

  #drawList(): void {
    this.#list.show(this.#comparison ? this.#pairRows(this.#comparison) : this.#stepRows());
    this.#list.select(this.#selected);
  }

  get #selected(): string {
    if (this.#comparison) return `pair:${this.#comparison.at}`;
    return this.#step ? keyOf(this.#step) : "";
  }

  #stepRows(): Row[] {
    const rows: Row[] = [];
    let previous: Step | undefined;
    const shown = this.#listed;
    for (const step of shown) {
      const { compile, phase } = step;
      const isNew = compile !== previous?.compile;
      if (isNew && this.journal.compiles.length > 1) rows.push(heading(compile.name, summary(compile), "tk-heading-kernel"));
      if (isNew || phase !== previous?.phase) {
        const time = shown.filter((one) => one.compile === compile && one.phase === phase && one.begin.depth === 0).reduce((sum, { ms }) => sum + ms, 0);
        rows.push(heading(phase, milliseconds(time)));
      }
      rows.push(stepRow(step, this.#found?.holders.has(step) ?? false, step === this.#marked));
      previous = step;
    }
    if (!rows.length) rows.push(heading("no step is of this kind"));
    return rows;
  }

  #pairRows({ a, b, pairs }: Comparison): Row[] {
    const first = pairs.findIndex(({ isSame }) => !isSame);
    const rows: Row[] = [heading(`A ${a.name}`, summary(a), "tk-heading-kernel"), heading(`B ${b.name}`, summary(b), "tk-heading-kernel")];
    let phase = "";
    pairs.forEach((pair, index) => {
      const here = basePhase((pair.a ?? pair.b)!.phase);
      if (here !== phase) rows.push(heading((phase = here)));
      rows.push(pairRow(pair, index, index === first));
    });
    return rows;
  }

  #choose(key: string): void {
    if (key.startsWith("pair:")) {
      this.#goToPair(Number(key.slice(5)));
      return;
    }
    const step = this.#steps.find((one) => keyOf(one) === key);
    if (step) this.#go(step);
  }

  // --- walking ---------------------------------------------------------------------------------------------------------

  #go(step: Step): void {
    this.#since = performance.now();
    this.#step = step;
    this.#against = undefined;
    this.#isEdit = true;
    this.#list.select(this.#selected);
    this.#draw();
  }

  #walk(direction: 1 | -1, eventfulOnly: boolean): void {
    if (this.#comparison) {
      const { pairs, at } = this.#comparison;
      for (let next = at + direction; next >= 0 && next < pairs.length; next += direction) {
        if (!eventfulOnly || !pairs[next]!.isSame) return this.#goToPair(next);
      }
      return;
    }
    if (!this.#step) return;
    const next = stepFrom(this.#listed, this.#step, direction, eventfulOnly && !this.#filter.badge);
    if (next !== this.#step) this.#go(next);
  }

  #walkPhases(direction: 1 | -1): void {
    const from = this.#step;
    if (!from || this.#comparison) return;
    const isOther = (step: Step): boolean => step.phase !== from.phase || step.compile !== from.compile;
    const next = stepFrom(this.#listed.filter((step) => step === from || isOther(step)), from, direction, false);
    // backwards, too, one comes to the beginning of a phase
    const phase = this.#listed.filter((step) => step.phase === next.phase && step.compile === next.compile);
    if (next !== from && phase[0]) this.#go(phase[0]);
  }

  // --- what is shown ---------------------------------------------------------------------------------------------------

  #draw(): void {
    const step = this.#step;
    if (!step) {
      this.#name.textContent = "nothing was traced yet";
      return;
    }
    this.#isDrawing = true;
    if (this.#comparison) this.#drawPair(this.#comparison);
    else this.#drawStep(step);
    this.#isDrawing = false;
    this.#drawMark();
    this.#drawFacts();
    this.#drawFound();
    this.root.dataset.shown = String(step.begin.index);
    requestAnimationFrame(() => {
      this.root.dataset.ms = (performance.now() - this.#since).toFixed(1);
    });
    this.#tell();
  }

  #drawStep(step: Step): void {
    const [before, after] = this.#texts(step);
    const isEdit = this.#showsEdit(step);
    const from = this.#against;
    const isTooLarge = !from && step.status === "changed" && step.end!.add === null;
    this.#name.replaceChildren(el("b", "", [step.number]), ` ${step.name}`);
    this.#name.title = step.name;
    const words = from ? `compared with ${from.number} ${from.name}` : isEdit ? "generated and compiled source" : step.status === "changed" ? "" : step.words;
    this.#word.textContent = [words, isTooLarge ? "too large to compare" : "", step.end && !from ? milliseconds(step.ms) : ""].filter(Boolean).join(" · ");
    this.#drawCards(step, from === undefined);
    const languages: [Language, Language] = isEdit ? [step.language, step.language] : [from ? from.language : step.taken, step.language];
    const labels: [string, string] = from
      ? [`${from.number} ${from.name}`, `${step.number} ${step.name}`]
      : isEdit
        ? ["generated", "compiled"]
        : [this.#beforeName(step), step.name];
    const isAlone = step.isBroken && !from;
    this.#diff.show({ before, after: isAlone ? null : after, languages, labels, isTranslation: languages[0] !== languages[1] || isTooLarge });
    this.#showBlame(step);
    this.#spoken.textContent = `${step.number} ${step.name}: ${step.words}`;
  }

  #drawCards(step: Step, isAlone: boolean): void {
    const cards = isAlone ? [errorBox(step, (culprit) => this.#go(culprit)), editCard(step), figures(step)] : [];
    const codegen = step.codegen;
    if (isAlone && codegen && codegen.source !== codegen.compiled) {
      const choice = (words: string, isEdit: boolean): HTMLElement => {
        const node = toggle(words, words, () => {
          this.#isEdit = isEdit;
          this.#draw();
        });
        node.setAttribute("aria-pressed", String(this.#isEdit === isEdit));
        return node;
      };
      cards.push(el("div", "tk-card", [choice("Generated → compiled", true), choice(`${LANGUAGES[step.taken]} → ${LANGUAGES[step.language]}`, false)]));
    }
    this.#cards.replaceChildren(...cards.filter((card) => card !== undefined));
  }

  #showsEdit({ codegen }: Step): boolean {
    return !this.#against && this.#isEdit && codegen !== undefined && codegen.source !== codegen.compiled;
  }

  /** The ids of the two texts that are shown. */
  #ids(step: Step): [string | null, string | null] {
    if (this.#against) return [this.#against.after, step.after];
    return this.#showsEdit(step) ? [step.codegen!.source, step.codegen!.compiled] : [step.begin.before, step.after];
  }

  #texts(step: Step): [readonly string[], readonly string[]] {
    const [before, after] = this.#ids(step);
    return [this.journal.lines(before), this.journal.lines(after)];
  }

  #beforeName(step: Step): string {
    const { steps } = step.compile;
    const made = steps.slice(0, steps.indexOf(step)).reverse().find((one) => one.end && one.end.after === step.begin.before && one.end.changed);
    return made?.name ?? "as written";
  }

  #drawFacts(): void {
    const compile = this.#step!.compile;
    const { line } = compile;
    const facts = [line.specialization, line.target, line.device, summary(compile)].filter(Boolean).join(" · ");
    this.#facts.textContent = facts;
    this.#facts.title = facts;
    this.root.setAttribute("aria-label", `Passes of ${compile.name}`);
  }

  // --- two steps, two compiles -----------------------------------------------------------------------------------------

  #compareMarked(): void {
    if (!this.#step || this.#comparison) return;
    if (!this.#marked || this.#marked === this.#step) {
      this.#marked = this.#marked ? undefined : this.#step;
      this.#drawList();
      this.#drawMark();
      return;
    }
    this.#against = this.#against ? undefined : this.#marked;
    this.#draw();
  }

  #drawMark(): void {
    const { number, name } = this.#marked ?? {};
    this.#mark.hidden = this.#comparison !== undefined;
    this.#mark.replaceChildren(!this.#marked ? "Mark" : this.#marked === this.#step ? "Marked" : this.#against ? "Compared" : `Compare with ${number}`);
    this.#mark.title = this.#marked ? `Marked: ${number} ${name} (x)` : "Mark this pass, to compare another with it (x)";
    this.#mark.setAttribute("aria-pressed", String(this.#marked !== undefined));
  }

  #compared(a: Compile, b: Compile): Comparison {
    const pairs = beside(a, b);
    const first = pairs.findIndex(({ isSame }) => !isSame);
    const own = pairs.findIndex((pair) => pair.a === this.#step || pair.b === this.#step);
    return { a, b, pairs, at: Math.max(0, own >= 0 && this.#step?.compile === b ? own : first >= 0 ? first : own) };
  }

  #compareWith(number: string): void {
    const other = this.journal.compiles[Number(number || -1)];
    const own = this.#step?.compile;
    this.#comparison = undefined;
    if (other && own && other !== own) {
      this.#step = undefined;
      this.#comparison = this.#compared(own, other);
      const { a, b } = this.#comparison.pairs[this.#comparison.at]!;
      this.#step = b ?? a;
    }
    this.#against = undefined;
    this.#since = performance.now();
    this.#drawList();
    this.#draw();
  }

  #goToPair(at: number): void {
    const comparison = this.#comparison!;
    comparison.at = at;
    const { a, b } = comparison.pairs[at]!;
    this.#since = performance.now();
    this.#step = b ?? a;
    this.#list.select(this.#selected);
    this.#draw();
  }

  #drawPair({ a, b, pairs, at }: Comparison): void {
    const pair = pairs[at]!;
    const step = (pair.b ?? pair.a)!;
    this.#others.value = String(b.number);
    this.#name.replaceChildren(el("b", "", [step.number]), ` ${step.name}`);
    this.#word.textContent = pair.isSame ? "the same in both" : !pair.a ? `only in B, ${b.name}` : !pair.b ? `only in A, ${a.name}` : "the results differ";
    const first = pairs.find(({ isSame }) => !isSame);
    const parting = first ? (first.a ?? first.b)! : undefined;
    const card = el("div", "tk-card", [parting ? "A and B part at " : "A and B never differ "]);
    if (parting) card.append(button(`${parting.number} ${parting.name}`, "Go to where they part", () => this.#goToPair(pairs.indexOf(first!))));
    card.append(el("span", "tk-grow"), button("Leave", "Leave the comparison (Esc)", () => this.#leaveComparison()));
    this.#cards.replaceChildren(card);
    const name = (side: string, one: Step): string => `${side} ${one.number} ${one.name}`;
    const languages: [Language, Language] = [step.language, step.language];
    if (pair.a && pair.b) {
      const [before, after] = [this.journal.lines(pair.a.after), this.journal.lines(pair.b.after)];
      this.#diff.show({ before, after, languages, labels: [name("A", pair.a), name("B", pair.b)], isTranslation: false });
    } else {
      const labels: [string, string] = [name(pair.a ? "A" : "B", step), ""];
      this.#diff.show({ before: this.journal.lines(step.after), after: null, languages, labels, isTranslation: false });
    }
    this.#diff.gutter(null);
    this.#spoken.textContent = `${step.name}: ${this.#word.textContent}`;
  }

  #leaveComparison(): void {
    this.#others.value = "";
    this.#compareWith("");
  }

  // --- blame -----------------------------------------------------------------------------------------------------------

  #toggleBlame(): void {
    this.#isBlamed = !this.#isBlamed;
    this.#draw();
  }

  #origins(step: Step): readonly (Step | undefined)[] {
    const { compile } = step;
    let blame = this.#blames.get(compile);
    if (!blame) this.#blames.set(compile, (blame = new Blame(this.journal, compile)));
    return blame.of(step);
  }

  #showBlame(step: Step): void {
    this.#blameToggle.setAttribute("aria-pressed", String(this.#isBlamed));
    const isShown = this.#isBlamed && !step.isBroken && !this.#showsEdit(step);
    this.#diff.gutter(isShown ? this.#origins(step).map((origin) => (origin ? `${origin.number} ${origin.name}` : "")) : null);
  }

  #goToOrigin(line: number): void {
    const origin = this.#step && this.#origins(this.#step)[line];
    if (origin && origin !== this.#step) this.#go(origin);
  }

  // --- lines -----------------------------------------------------------------------------------------------------------

  #onLine(_side: Side, _line: number): void {
    this.#tell();
  }

  // --- find ------------------------------------------------------------------------------------------------------------

  get #needle(): string {
    return this.#find.value;
  }

  #findAll(): Found {
    return find(this.journal, this.#step?.compile.steps ?? [], this.#needle);
  }

  #search(): void {
    this.#found = this.#needle ? this.#findAll() : undefined;
    this.#drawList();
    this.#drawFound();
    this.#tell();
  }

  #drawFound(): void {
    const needle = this.#needle;
    if (needle && this.#found && this.#step && this.#found.compile !== this.#step.compile) {
      this.#found = this.#findAll();
      this.#drawList();
    }
    this.#findHere(0);
    this.#strip.replaceChildren(...(needle && this.#found ? this.#foundWords(this.#found) : []));
  }

  #foundWords({ first, last, isOriginal, holders, gone }: Found): (Node | string)[] {
    if (!first || !last) return [isOriginal ? "only in the program as written" : "in no pass"];
    const link = (step: Step): HTMLElement => button(`${step.number} ${step.name}`, `Go to ${step.name}`, () => this.#go(step));
    const words: (Node | string)[] = [`in ${plural(holders.size, "result")}: `, isOriginal ? "there as written, first " : "appears in ", link(first), " last ", link(last)];
    return gone ? [...words, " gone after ", link(gone)] : words;
  }

  #findHere(direction: -1 | 0 | 1): void {
    const { at, of } = this.#diff.find(this.#needle, direction);
    this.#hits.textContent = !this.#needle ? "" : of ? `${at} of ${of}` : "not here";
  }

  #findKey(event: KeyboardEvent): void {
    if (event.key === "Enter") {
      const isElsewhere = this.#hits.textContent === "not here" && this.#found?.first && !this.#comparison;
      if (isElsewhere) this.#go(this.#found!.first!);
      else this.#findHere(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      this.#find.value = "";
      this.#search();
      this.#diff.viewport.focus({ preventScroll: true });
    } else return;
    event.preventDefault();
  }

  // --- keys, help, copies ----------------------------------------------------------------------------------------------

  #toggleChanged(): void {
    this.#narrow({ isEventful: !this.#filter.isEventful });
  }

  #key(key: string, event: KeyboardEvent): boolean {
    const actions: Record<string, () => void> = {
      j: () => this.#walk(1, true),
      k: () => this.#walk(-1, true),
      J: () => this.#walk(1, false),
      K: () => this.#walk(-1, false),
      "[": () => this.#walkPhases(-1),
      "]": () => this.#walkPhases(1),
      c: () => this.#toggleChanged(),
      b: () => this.#toggleBlame(),
      x: () => this.#compareMarked(),
      y: () => this.#copy("after"),
      Y: () => this.#copy("before"),
      s: () => this.#foldSide(),
      "/": () => this.#find.focus(),
      "?": () => this.#toggleHelp(),
    };
    if (document.activeElement === this.#list.element) {
      actions.ArrowDown = () => this.#walk(1, false);
      actions.ArrowUp = () => this.#walk(-1, false);
    }
    if (key === "Escape" && this.#help) actions.Escape = () => this.#toggleHelp();
    const action = actions[key];
    if (!action && this.#diff.key(key, event)) return true;
    if (!action && key !== "Escape") return false;
    if (action) action();
    else this.#escape();
    return true;
  }

  #escape(): void {
    if (this.#comparison) this.#leaveComparison();
    else if (this.#against) {
      this.#against = undefined;
      this.#draw();
    } else if (this.#needle) {
      this.#find.value = "";
      this.#search();
    } else if (this.#marked) {
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
    this.#help = helpDialog([...KEYS, ...this.#diff.keys], this.journal.runs, () => this.#toggleHelp());
    this.root.append(this.#help);
    this.#help.querySelector("button")!.focus();
  }

  async #copy(side: "before" | "after"): Promise<void> {
    if (!this.#step) return;
    const [before, after] = this.#texts(this.#step);
    const lines = side === "before" ? before : after;
    const isCopied = await copy(lines.join("\n"));
    this.#toast.textContent = isCopied ? `copied ${plural(lines.length, "line")} ${side}` : "the browser refused to copy";
    setTimeout(() => (this.#toast.textContent = ""), 1600);
  }

  /** Paper has no scroll bar: what changed, with some lines around it. */
  #layOutForPrint(): void {
    const step = this.#step;
    if (!step) return;
    const [before, after] = this.#texts(step);
    const isCompared = !step.isTranslation && !step.isBroken;
    const text = isCompared ? changes(before, after) : (step.isBroken ? before : after).join("\n");
    const title = `${step.compile.name} · ${step.number} ${step.name} · ${step.words}`;
    const boxes = [...this.#cards.children].map((card) => card.cloneNode(true));
    this.#print.replaceChildren(el("h1", "", [title]), ...boxes, el("pre", "", [text]));
  }
}

function toggle(words: string, name: string, onClick: () => void): HTMLButtonElement {
  const node = button(words, name, onClick, "tk-toggle");
  node.setAttribute("aria-pressed", "false");
  return node;
}

/** A compile in a few words. */
function summary(compile: Compile): string {
  const changed = compile.steps.filter(({ status }) => status === "changed").length;
  const status = compile.status === "done" ? "" : compile.status;
  return [plural(compile.steps.length, "step"), `${changed} changed`, milliseconds(compile.ms), status].filter(Boolean).join(" · ");
}

function changes(before: readonly string[], after: readonly string[]): string {
  const parts = hunks(before, after).map(({ removed, added }) => {
    const head = `@@ ${removed.start + 1} → ${added.start + 1} @@`;
    const around = (from: number, to: number): string[] => before.slice(Math.max(0, from), to).map((line) => `  ${line}`);
    const gone = before.slice(removed.start, removed.stop).map((line) => `- ${line}`);
    const come = after.slice(added.start, added.stop).map((line) => `+ ${line}`);
    return [head, ...around(removed.start - PRINTED_CONTEXT, removed.start), ...gone, ...come, ...around(removed.stop, removed.stop + PRINTED_CONTEXT)].join("\n");
  });
  return parts.length ? parts.join("\n") : after.join("\n");
}

// SPDX-License-Identifier: Apache-2.0
// Where one is in a journal: which step is shown, beside what, and which ones are listed. No DOM here.
import { BADGES, EVERYTHING, type Filter, listed, step as stepFrom } from "./filters.ts";
import type { Compile, Journal, Step } from "./journal.ts";
import type { Place } from "./link.ts";
import { Blame, type Comparison, compared, opening, type Pair } from "./queries.ts";
import { ofPair, ofStep, type Subject } from "./subject.ts";

type Direction = 1 | -1;

/** Of a `Place`, what is told here. */
type Whereabouts = Pick<Place, "p" | "run" | "x" | "ab" | "b" | "k" | "t" | "s">;

export class State {
  filter: Filter = EVERYTHING;
  /** Whether each line says which pass made it. */
  isBlamed = false;
  /** The step that is shown; undefined: nothing was traced yet. */
  step: Step | undefined;
  /** The step that the shown one is compared with, instead of what it was given. */
  against: Step | undefined;
  /** The step that the next one may be compared with. */
  marked: Step | undefined;
  comparison: Comparison | undefined;
  /** Which pair of the comparison is shown. */
  pair = 0;
  /** Whether of a step whose source was edited the edit is shown, and not what the source was generated from. */
  wantsEdit = true;
  readonly #steps: readonly Step[];
  readonly #blames = new Map<Compile, Blame>();

  constructor(private readonly journal: Journal) {
    this.#steps = journal.steps;
  }

  get isEdit(): boolean {
    return this.wantsEdit && !this.comparison && !this.against && this.step?.isEdited === true;
  }

  get listed(): Step[] {
    return listed(this.#steps, this.filter);
  }

  /** The steps that a phase or a kind is chosen from. */
  get choosable(): readonly Step[] {
    const { compile } = this.filter;
    return compile === undefined ? this.#steps : this.journal.compiles[compile]!.steps;
  }

  get subject(): Subject | undefined {
    if (!this.step) return undefined;
    if (this.comparison) return ofPair(this.journal, this.comparison, this.comparison.pairs[this.pair]!);
    return ofStep(this.journal, this.step, this.against, this.isEdit);
  }

  // --- its address -----------------------------------------------------------------------------------------------------

  get place(): Whereabouts {
    const { compile: k, phase: t, badge: s } = this.filter;
    const { a, b } = this.comparison ?? {};
    return {
      p: this.step?.begin.index,
      run: (this.step && this.#runOf(this.step)) || undefined,
      x: this.against?.begin.index,
      ab: a && b && [a.number, b.number],
      b: this.isBlamed,
      k,
      t,
      s,
    };
  }

  /** Go where an address says; what it does not say is as it is when a page opens. */
  set place({ p, run = 0, x, ab, b = false, k = -1, t, s }: Whereabouts) {
    const find = (index: number | undefined): Step | undefined => this.#steps.find((step) => step.begin.index === index && this.#runOf(step) === run);
    const { compiles } = this.journal;
    this.filter = { ...EVERYTHING, compile: compiles[k]?.number, badge: BADGES.find(({ name }) => name === s)?.name };
    this.filter.phase = this.choosable.find(({ phase }) => phase === t)?.phase;
    this.isBlamed = b;
    this.against = find(x);
    this.step = find(p) ?? opening(this.listed) ?? this.#steps[0];
    const [one, other] = (ab ?? []).map((number) => compiles[number]);
    this.#compare(one, other, this.step);
  }

  #runOf({ compile }: Step): number {
    return this.journal.runs.indexOf(compile.run);
  }

  // --- walking; whether one has come anywhere --------------------------------------------------------------------------

  go(step: Step): boolean {
    this.comparison = this.against = undefined;
    this.step = step;
    this.wantsEdit = true;
    return true;
  }

  goToPair(at: number): boolean {
    const pair = this.comparison?.pairs[at];
    if (!pair) return false;
    this.pair = at;
    this.step = pair.b ?? pair.a;
    return true;
  }

  /** To the next step that is listed, or the next pair; of those that did something, or differ, only. */
  walk(direction: Direction, eventfulOnly: boolean): boolean {
    if (this.comparison) return this.#walkPairs(this.comparison.pairs, direction, eventfulOnly);
    const next = this.step && stepFrom(this.listed, this.step, direction, eventfulOnly);
    return next !== undefined && next !== this.step && this.go(next);
  }

  #walkPairs(pairs: readonly Pair[], direction: Direction, otherOnly: boolean): boolean {
    let at = this.pair + direction;
    while (otherOnly && pairs[at]?.isSame) at += direction;
    return this.goToPair(at);
  }

  /** To the first step of the next phase. */
  walkPhases(direction: Direction): boolean {
    const from = this.step;
    if (!from || this.comparison) return false;
    const isIn = (step: Step, of: Step): boolean => step.phase === of.phase && step.compile === of.compile;
    const { listed: shown } = this;
    const next = stepFrom(shown.filter((step) => !isIn(step, from)), from, direction, false);
    const first = shown.find((step) => isIn(step, next));
    return next !== from && first !== undefined && this.go(first);
  }

  /** List other steps, and go to the first of them where the shown one is none. */
  narrow(filter: Partial<Filter>): boolean {
    this.filter = { ...this.filter, ...filter };
    const { listed: shown } = this;
    if (this.comparison || !shown[0] || !this.step || shown.includes(this.step)) return false;
    return this.go(shown[0]);
  }

  // --- beside each other -----------------------------------------------------------------------------------------------

  /** Mark the shown step, or take the mark back; if another one is marked, compare with that, or no longer. */
  mark(): void {
    if (!this.step || this.comparison) return;
    if (this.marked && this.marked !== this.step) this.against = this.against ? undefined : this.marked;
    else this.marked = this.marked ? undefined : this.step;
  }

  /** Set the compile of the shown step and another one beside each other, where they part; undefined: no longer. */
  compareWith(other: Compile | undefined): void {
    this.#compare(this.comparison?.a ?? this.step?.compile, other);
  }

  /** Leave the comparison, of compiles or of steps. */
  leave(): void {
    this.comparison = this.against = undefined;
  }

  /** Set two compiles beside each other: at a step of theirs, else where they part. */
  #compare(a: Compile | undefined, b: Compile | undefined, at?: Step): void {
    const found = a && b && a !== b ? compared(a, b) : undefined;
    this.comparison = found?.pairs.length ? found : undefined;
    if (!this.comparison) return;
    const { pairs, parting } = this.comparison;
    const own = pairs.findIndex((pair) => at && (pair.a === at || pair.b === at));
    this.against = undefined;
    this.goToPair(own >= 0 ? own : Math.max(parting, 0));
  }

  // --- blame -----------------------------------------------------------------------------------------------------------

  /** For each line of what the shown step made, the step that made it, where that is asked for and can be said. */
  get origins(): readonly (Step | undefined)[] | undefined {
    if (!this.isBlamed || !this.step || this.comparison || this.isEdit) return undefined;
    const { compile } = this.step;
    let blame = this.#blames.get(compile);
    if (!blame) this.#blames.set(compile, (blame = new Blame(this.journal, compile)));
    return blame.of(this.step);
  }
}

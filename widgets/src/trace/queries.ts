// SPDX-License-Identifier: Apache-2.0
// Questions about all steps at once: where a text appears, which step made each line, where two compiles part. No DOM here.
import { hunks } from "../common/textdiff.ts";
import type { Compile, Journal, Step } from "./journal.ts";

export interface Found {
  compile: Compile;
  needle: string;
  /** The steps whose result has it. */
  holders: ReadonlySet<Step>;
  first: Step | undefined;
  last: Step | undefined;
  /** The step that removed it for good. */
  gone: Step | undefined;
  /** Whether the program had it before any step. */
  isOriginal: boolean;
}

/** The steps of a compile whose result has a text in one of its lines, in capital letters or not. */
export function find(journal: Journal, compile: Compile, needle: string): Found {
  const wanted = needle.toLowerCase();
  const known = new Map<string | null, boolean>();
  const isIn = (id: string | null): boolean => {
    let answer = known.get(id);
    if (answer === undefined) known.set(id, (answer = journal.lines(id).some((line) => line.toLowerCase().includes(wanted))));
    return answer;
  };
  const ended = compile.steps.filter(({ end }) => end !== undefined);
  const holders = ended.filter((step) => isIn(step.end!.after));
  const last = holders.at(-1);
  const [written] = compile.steps;
  const isOriginal = written !== undefined && isIn(written.begin.before);
  return {
    compile,
    needle,
    holders: new Set(holders),
    first: holders[0],
    last,
    gone: last ? ended[ended.indexOf(last) + 1] : isOriginal ? ended[0] : undefined,
    isOriginal,
  };
}

/** For each line of what a step made, the step that last changed it; undefined: it is as it was written. */
export type Origins = readonly (Step | undefined)[];

/** Who made each line of each step's result; what steps in a step changed counts as theirs. */
export class Blame {
  readonly #origins = new Map<Step, Origins>();

  constructor(
    private readonly journal: Journal,
    compile: Compile,
  ) {
    // in the order in which they ended: those in a step before the step itself
    const ended: Step[] = [];
    const open: Step[] = [];
    const close = (depth: number): void => {
      while (open.length > depth) ended.push(open.pop()!);
    };
    for (const step of compile.steps) {
      close(step.begin.depth);
      open.push(step);
    }
    close(0);
    this.#ended = ended.filter(({ end }) => end !== undefined);
  }

  readonly #ended: Step[];

  of(step: Step): Origins {
    for (let at = this.#origins.size; at < this.#ended.length && !this.#origins.has(step); at++) this.#take(at);
    return this.#origins.get(step) ?? [];
  }

  #take(at: number): void {
    const step = this.#ended[at]!;
    const previous = this.#ended[at - 1];
    const before = previous ? previous.end!.after : step.begin.before;
    const origins: Origins = previous ? this.#origins.get(previous)! : new Array<undefined>(this.journal.lines(before).length).fill(undefined);
    const { after } = step.end!;
    this.#origins.set(step, after === before ? origins : this.#passedOn(origins, before, after, step));
  }

  #passedOn(origins: Origins, before: string | null, after: string | null, step: Step): Origins {
    const lines = this.journal.lines(after);
    if (step.isTranslation) return lines.map(() => step);
    const result: (Step | undefined)[] = [];
    let at = 0;
    for (const { removed, added } of hunks(this.journal.lines(before), lines)) {
      while (at < removed.start) result.push(origins[at++]);
      for (let line = added.start; line < added.stop; line++) result.push(step);
      at = removed.stop;
    }
    while (result.length < lines.length) result.push(origins[at++]);
    return result;
  }
}

/** The same step of two compiles, or one that only one of them has. */
export interface Pair {
  a: Step | undefined;
  b: Step | undefined;
  isSame: boolean;
}

/** The steps of two compiles beside each other, by phase, name and occurrence, in the order of both. */
export function beside(a: Compile, b: Compile): Pair[] {
  const pairs: Pair[] = [];
  let left = 0;
  const same = (stop: number, right: number): void => {
    for (; left < stop; left++, right++) {
      const [one, other] = [a.steps[left]!, b.steps[right]!];
      pairs.push({ a: one, b: other, isSame: one.after === other.after && one.isBroken === other.isBroken });
    }
  };
  const keys = (compile: Compile): string[] => compile.steps.map(({ key }) => key);
  let right = 0;
  for (const { removed, added } of hunks(keys(a), keys(b))) {
    same(removed.start, right);
    for (; left < removed.stop; left++) pairs.push({ a: a.steps[left], b: undefined, isSame: false });
    for (const step of b.steps.slice(added.start, added.stop)) pairs.push({ a: undefined, b: step, isSame: false });
    right = added.stop;
  }
  same(a.steps.length, right);
  return pairs;
}

/** Two compiles beside each other. */
export interface Comparison {
  a: Compile;
  b: Compile;
  pairs: readonly Pair[];
  /** The first pair whose results are not the same, or -1. */
  parting: number;
}

export function compared(a: Compile, b: Compile): Comparison {
  const pairs = beside(a, b);
  return { a, b, pairs, parting: pairs.findIndex(({ isSame }) => !isSame) };
}

/** Where a page opens: at the first failure, else at the last change before the source was generated, else at the first step. */
export function opening(steps: readonly Step[]): Step | undefined {
  // of steps in each other that broke, the innermost did it
  const broken = steps.filter((step) => step.isBroken && step.status !== "aborted");
  const culprit = broken.find((step) => step.status !== "unfinished") ?? broken[broken.length - 1];
  const codegen = steps.findIndex(({ status, language }) => status === "translated" && language === "cuda");
  const passes = codegen < 0 ? steps : steps.slice(0, codegen);
  return culprit ?? passes.filter(({ status }) => status === "changed").at(-1) ?? steps.find((step) => step.isEventful) ?? steps[0];
}


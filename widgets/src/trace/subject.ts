// SPDX-License-Identifier: Apache-2.0
// What is shown: what a step made of its text, two steps, or a step of two compiles. No DOM here.
import { milliseconds } from "../common/dom.ts";
import { hunks } from "../common/textdiff.ts";
import type { Shown } from "./diff.ts";
import type { Journal, Step } from "./journal.ts";
import type { Comparison, Pair } from "./queries.ts";
import { wordsOf } from "./rows.ts";

export interface Subject extends Shown {
  /** The step that it is called by. */
  step: Step;
  /** The texts, where lines of theirs lead to those of other languages. */
  ids: readonly [before: string | null, after: string | null];
  /** What became of the text, in words. */
  words: string;
  added: number;
  removed: number;
}

/** A step; or what it made beside what another one made, or the source that was compiled beside the generated one. */
export function ofStep(journal: Journal, step: Step, against: Step | undefined, isEdit: boolean): Subject {
  if (against) return between(journal, step, against);
  if (isEdit) return edited(journal, step);
  const { before } = step.begin;
  const isAlone = step.isBroken || step.after === null || step.after === before;
  const words = [step.status === "changed" ? "" : step.words, step.end ? milliseconds(step.ms) : "", step.isTooLarge ? "too large to compare" : ""];
  const texts: Shown = {
    before: journal.lines(before),
    after: isAlone ? null : journal.lines(step.after),
    languages: [step.taken, step.language],
    labels: !isAlone ? [step.giver?.name ?? "as written", step.name] : [step.isBroken ? `what ${step.name} was given` : `${step.name}: ${step.words}`, ""],
    sides: ["before", "after"],
    isTranslation: step.isTranslation || step.isTooLarge,
    origins: step.notes.get("lines")?.map,
  };
  const { add, del } = step.end ?? {};
  const counts = add == null ? counted(texts) : { added: add, removed: del! };
  return { ...texts, ...counts, step, ids: [before, step.isBroken ? null : step.after], words: said(words) };
}

function between(journal: Journal, step: Step, against: Step): Subject {
  const texts: Shown = {
    before: journal.lines(against.after),
    after: journal.lines(step.after),
    languages: [against.language, step.language],
    labels: [`${against.number} ${against.name}`, `${step.number} ${step.name}`],
    isTranslation: against.language !== step.language,
  };
  return { ...texts, ...counted(texts), step, ids: [against.after, step.after], words: `compared with ${against.number} ${against.name}` };
}

function edited(journal: Journal, step: Step): Subject {
  const { source, compiled } = step.codegen!;
  const texts: Shown = {
    before: journal.lines(source),
    after: journal.lines(compiled),
    languages: [step.language, step.language],
    labels: ["generated", "compiled"],
    isTranslation: false,
  };
  const words = ["generated and compiled source", step.end ? milliseconds(step.ms) : ""];
  return { ...texts, ...counted(texts), step, ids: [source, compiled], words: said(words) };
}

/** The same step of two compiles; the one that it is a step of, where the other lacks it. */
export function ofPair(journal: Journal, { a, b }: Comparison, pair: Pair): Subject {
  const step = (pair.b ?? pair.a)!;
  const name = (side: string, one: Step): string => `${side} ${one.number} ${one.name}`;
  const texts: Shown = {
    before: journal.lines((pair.a ?? step).after),
    after: pair.a && pair.b ? journal.lines(pair.b.after) : null,
    languages: [step.language, step.language],
    labels: pair.a && pair.b ? [name("A", pair.a), name("B", pair.b)] : [name(pair.a ? "A" : "B", step), ""],
    isTranslation: false,
  };
  const words = !pair.a ? `only in B, ${b.name}` : !pair.b ? `only in A, ${a.name}` : wordsOf(pair);
  return { ...texts, ...counted(texts), step, ids: [null, null], words };
}

const said = (words: readonly string[]): string => words.filter(Boolean).join(" · ");

/** How many lines came and went between two texts that are compared. */
function counted({ before, after, isTranslation }: Shown): { added: number; removed: number } {
  const found = after === null || isTranslation ? [] : hunks(before, after);
  const count = (side: "removed" | "added"): number => found.reduce((sum, hunk) => sum + hunk[side].stop - hunk[side].start, 0);
  return { added: count("added"), removed: count("removed") };
}

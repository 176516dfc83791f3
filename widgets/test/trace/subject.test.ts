// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { compared } from "../../src/trace/queries.ts";
import { ofPair, ofStep } from "../../src/trace/subject.ts";
import { journalOf, linesOf } from "./journals.ts";

const made = [
  { name: "double", after: "a\nb\nb" },
  { name: "keep", after: "a\nb\nb" },
  { name: "drop", after: "b" },
];
const journal = journalOf(linesOf("a\nb", made), linesOf("a\nb", made.slice(0, 2), 1));
const [one, two] = journal.compiles;
const [double, keep, drop] = one!.steps;

test("a step shows what it was given beside what it made, one that changed nothing shows one text", () => {
  const shown = ofStep(journal, drop!, undefined, false);
  assert.deepEqual([shown.before, shown.after], [["a", "b", "b"], ["b"]]);
  assert.deepEqual([shown.labels, shown.sides], [["double", "drop"], ["before", "after"]]);
  const same = ofStep(journal, keep!, undefined, false);
  assert.deepEqual([same.before, same.after, same.labels[0]], [["a", "b", "b"], null, "keep: no change"]);
});

test("of two steps there is what they made and how many lines part it, and neither is before the other", () => {
  const shown = ofStep(journal, drop!, double, false);
  assert.deepEqual([shown.before, shown.after, shown.sides], [["a", "b", "b"], ["b"], undefined]);
  assert.deepEqual([shown.added, shown.removed, shown.words], [0, 2, "compared with 00 double"]);
});

test("of two compiles a step that one of them lacks stands alone", () => {
  const comparison = compared(one!, two!);
  const alone = ofPair(journal, comparison, comparison.pairs.find(({ b }) => !b)!);
  assert.deepEqual([alone.step, alone.before, alone.after, alone.words], [drop, ["b"], null, "only in A, kernel_0"]);
  const both = ofPair(journal, comparison, comparison.pairs[0]!);
  assert.deepEqual([both.before, both.after, both.words], [["a", "b", "b"], ["a", "b", "b"], "same result"]);
});

// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Journal, Step } from "../../src/trace/journal.ts";
import { read, written } from "../../src/trace/link.ts";
import { State } from "../../src/trace/state.ts";
import { journalOf, linesOf, pipeline, random } from "./journals.ts";

const made = [
  { name: "double", after: "a\nb\nb" },
  { name: "keep", after: "a\nb\nb" },
  { name: "drop", after: "b" },
  { name: "write", after: "b;", phase: "codegen" },
];

function opened(): [state: State, journal: Journal, steps: readonly Step[]] {
  const journal = journalOf(linesOf("a\nb", made), linesOf("a\nb", [{ name: "double", after: "a\nb\nb\nb" }, ...made.slice(1)], 1));
  const state = new State(journal);
  state.place = {};
  return [state, journal, journal.compiles[0]!.steps];
}

test("one opens at the last change before the source, and walks over what did nothing unless asked not to", () => {
  const [state, , [double, keep, drop]] = opened();
  assert.equal(state.step, drop);
  assert.ok(state.walk(-1, true));
  assert.equal(state.step, double);
  assert.ok(state.walk(1, false));
  assert.equal(state.step, keep);
});

test("who is at an end has come nowhere", () => {
  const [state, , [double]] = opened();
  state.go(double!);
  assert.equal(state.walk(-1, false), false);
  assert.equal(state.step, double);
});

test("phases are walked to their first steps", () => {
  const [state, , [double, , , write]] = opened();
  assert.ok(state.walkPhases(1));
  assert.equal(state.step, write);
  assert.ok(state.walkPhases(-1));
  assert.equal(state.step, double);
});

test("what is no longer listed is left for the first that is", () => {
  const [state, , [, , drop, write]] = opened();
  assert.equal(state.narrow({ name: "d" }), false);
  assert.equal(state.step, drop);
  assert.ok(state.narrow({ name: "", phase: "codegen" }));
  assert.equal(state.step, write);
});

test("a marked step stands beside another one until it is asked for again", () => {
  const [state, , [double, , drop]] = opened();
  state.mark();
  assert.deepEqual([state.marked, state.against], [drop, undefined]);
  state.go(double!);
  state.mark();
  assert.deepEqual([state.marked, state.against, state.subject?.before], [drop, drop, ["b"]]);
  state.mark();
  assert.equal(state.against, undefined);
});

test("two compiles stand beside each other where they part, and are left at a step", () => {
  const [state, journal] = opened();
  const [, other] = journal.compiles;
  state.compareWith(other);
  assert.deepEqual([state.comparison?.b, state.pair, state.step], [other, 0, other!.steps[0]]);
  assert.ok(state.walk(1, false));
  assert.equal(state.pair, 1);
  state.leave();
  assert.deepEqual([state.comparison, state.step], [undefined, other!.steps[1]]);
});

test("compiles without a step have nothing to compare", () => {
  const journal = journalOf(linesOf("", []), linesOf("", [], 1));
  const state = new State(journal);
  state.place = { ab: [0, 1] };
  assert.deepEqual([state.comparison, state.step, state.subject], [undefined, undefined, undefined]);
});

const makers = ({ origins }: State): unknown => origins?.map((step) => step?.name);

test("who made a line is said where it is asked for, and of no comparison", () => {
  const [state, journal, [double]] = opened();
  assert.equal(makers(state), undefined);
  state.isBlamed = true;
  state.go(double!);
  assert.deepEqual(makers(state), [undefined, undefined, "double"]);
  state.compareWith(journal.compiles[1]);
  assert.equal(makers(state), undefined);
});

test("an address says where one is, whatever was done before", () => {
  for (let round = 0; round < 40; round++) {
    const journal = journalOf(linesOf(...pipeline(1 + random(8))), linesOf(...pipeline(1 + random(8)), 1));
    const state = new State(journal);
    state.place = {};
    const acts = [
      () => state.walk(random(2) ? 1 : -1, random(2) === 0),
      () => state.walkPhases(random(2) ? 1 : -1),
      () => state.mark(),
      () => state.narrow({ compile: random(2) ? random(2) : undefined }),
      () => state.compareWith(random(2) ? journal.compiles[random(2)] : undefined),
      () => (state.isBlamed = !state.isBlamed),
      () => state.leave(),
    ];
    for (let n = random(12); n > 0; n--) acts[random(acts.length)]!();
    const again = new State(journal);
    again.place = read(written(state.place));
    const seen = ({ step, against, comparison, pair, isBlamed, filter }: State): unknown => [step, against, comparison?.b, comparison && pair, isBlamed, filter.compile];
    assert.deepEqual(seen(again), seen(state), written(state.place));
  }
});

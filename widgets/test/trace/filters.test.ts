// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { EVERYTHING, type Filter, listed, phases, signOf, step } from "../../src/trace/filters.ts";
import type { Step } from "../../src/trace/journal.ts";
import { journalOf, linesOf } from "./journals.ts";

const { steps } = journalOf(
  linesOf("a", [
    { name: "same", after: "a" },
    { name: "change", after: "b" },
    { name: "same", after: "b" },
    { name: "simplify", after: "c", phase: "hidet" },
    { name: "print_module", after: "int c;", phase: "codegen" },
  ]),
  linesOf("a", [{ name: "change", after: "d" }], 1),
);
const names = (filter: Partial<Filter>): string[] => listed(steps, { ...EVERYTHING, ...filter }).map(({ name }) => name);

test("case 95: each kind of step has its sign", () => {
  assert.deepEqual(steps.map(signOf), ["○", "●", "○", "●", "◆", "●"]);
});

test("case 95: filters add up", () => {
  assert.equal(names({}).length, 6);
  assert.deepEqual(names({ badge: "same" }), ["same", "same#2"]);
  assert.deepEqual(names({ phase: "tile", isEventful: true }), ["change", "change"]);
  assert.deepEqual(names({ phase: "tile", isEventful: true, compile: 1 }), ["change"]);
  assert.deepEqual(names({ name: " SIMP" }), ["simplify"]);
  assert.deepEqual(names({ name: "simplify", badge: "failed" }), []);
});

test("phases stand in the order in which they first appear", () => {
  assert.deepEqual([...phases(steps)], [["tile", 4], ["hidet", 1], ["codegen", 1]]);
});

test("case 76: the keys go to what is listed, and past what did nothing where something did", () => {
  const walk = (shown: Step[], from: Step, direction: 1 | -1, eventfulOnly: boolean): string => step(shown, from, direction, eventfulOnly).name;
  const [first, change] = steps as [Step, Step];
  assert.equal(walk(steps, first, 1, true), "change");
  assert.equal(walk(steps, change, 1, true), "simplify");
  assert.equal(walk(steps, change, 1, false), "same#2");
  assert.equal(walk(steps, change, -1, true), "change"); // none is there: it stays
  const idle = listed(steps, { ...EVERYTHING, badge: "same" });
  assert.equal(walk(idle, first, 1, true), "same#2");
  const tile = listed(steps, { ...EVERYTHING, phase: "tile" });
  assert.equal(step(tile, change, 1, true), steps[5]);
});

// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { hunks } from "../../src/common/textdiff.ts";
import type { Compile, Journal, Step } from "../../src/trace/journal.ts";
import { Blame, beside, compared, find, opening } from "../../src/trace/queries.ts";
import { journalOf, linesOf, type Made, pipeline, random } from "./journals.ts";

/** Who made each line, by carrying each line alone through all passes. */
function bruteForce(journal: Journal, compile: Compile, upTo: Step): (Step | undefined)[] {
  let lines = journal.lines(compile.steps[0]!.begin.before).map((text): { text: string; by: Step | undefined } => ({ text, by: undefined }));
  for (const step of compile.steps.slice(0, compile.steps.indexOf(upTo) + 1)) {
    const now = journal.lines(step.after);
    const gone = new Set<number>();
    const come = new Set<number>();
    for (const { removed, added } of hunks(lines.map(({ text }) => text), now)) {
      for (let at = removed.start; at < removed.stop; at++) gone.add(at);
      for (let at = added.start; at < added.stop; at++) come.add(at);
    }
    const kept = lines.filter((_, at) => !gone.has(at));
    lines = now.map((text, at) => (come.has(at) ? { text, by: step } : kept.shift()!));
  }
  return lines.map(({ by }) => by);
}

test("case 79: blame agrees with following every line by itself, on a hundred pipelines", () => {
  for (let n = 0; n < 100; n++) {
    const journal = journalOf(linesOf(...pipeline(1 + random(8))));
    const [compile] = journal.compiles;
    const blame = new Blame(journal, compile!);
    for (const step of compile!.steps) assert.deepEqual(blame.of(step), bruteForce(journal, compile!, step));
  }
});

test("what a step in a step changed is its own, and the translation made every line", () => {
  const made: Made[] = [
    { name: "outer", after: "a\nB\nC" },
    { name: "inner", after: "a\nB\nc", depth: 1 },
    { name: "print_module", after: "a;\nB\nC;", phase: "codegen" },
  ];
  const lines = linesOf("a\nb\nc", made);
  // the inner one ran first: it was given what the outer one was given, and the outer one went on from its result
  const inner = lines.find((line) => line.k === "pass_begin" && line.name === "inner")!;
  Object.assign(inner, { before: "id of a\nb\nc" });
  const journal = journalOf(lines);
  const [outer, within, print] = journal.steps as [Step, Step, Step];
  const blame = new Blame(journal, journal.compiles[0]!);
  assert.deepEqual(blame.of(outer), [undefined, within, outer]);
  assert.deepEqual(blame.of(print), [print, print, print]);
});

test("case 79: a text is found in the first and the last pass that has it, and the one that removed it is named", () => {
  const journal = journalOf(linesOf("x", ["x", "y\nMMA_sync", "y\nmma_sync", "y", "z"].map((after, n) => ({ name: `pass_${n}`, after }))));
  const [compile] = journal.compiles;
  const { first, last, gone, isOriginal, holders } = find(journal, compile!, "mma_sync");
  assert.deepEqual([first!.name, last!.name, gone!.name, isOriginal, holders.size], ["pass_1", "pass_2", "pass_3", false, 2]);
  assert.deepEqual([find(journal, compile!, "x").isOriginal, find(journal, compile!, "x").gone!.name], [true, "pass_1"]);
  assert.equal(find(journal, compile!, "z").gone, undefined);
  assert.equal(find(journal, compile!, "nowhere").first, undefined);
});

test("case 78: two compiles are paired by phase, name and occurrence, and part at the first other result", () => {
  const one = linesOf("a", [{ name: "p", after: "b" }, { name: "q", after: "c" }, { name: "p", after: "d" }, { name: "only", after: "e" }]);
  const two = linesOf("a", [{ name: "p", after: "b" }, { name: "new", after: "b" }, { name: "q", after: "X" }, { name: "p", after: "d" }], 1);
  const journal = journalOf(one, two);
  const [a, b] = journal.compiles;
  const pairs = beside(a!, b!).map(({ a: left, b: right, isSame }) => [left?.name, right?.name, isSame]);
  assert.deepEqual(pairs, [
    ["p", "p", true],
    [undefined, "new", false],
    ["q", "q", false],
    ["p#2", "p#2", true],
    ["only", undefined, false],
  ]);
  assert.equal(compared(a!, b!).parting, 1);
  assert.equal(compared(a!, a!).parting, -1);
});

test("case 81: a page opens at the first failure, else at the last change before the source, else at the first step", () => {
  const made: Made[] = [
    { name: "same", after: "a" },
    { name: "one", after: "b" },
    { name: "two", after: "c" },
    { name: "last", after: "c" },
    { name: "print_module", after: "int c;", phase: "codegen" },
  ];
  const lines = linesOf("a", made);
  assert.equal(opening(journalOf(lines).steps)!.name, "two");
  assert.equal(opening(journalOf(linesOf("a", made.slice(0, 1))).steps)!.name, "same");
  const failed = lines.map((line) =>
    line.k === "pass_end" && (line.seq === 1 || line.seq === 2)
      ? { k: "pass_fail" as const, c: 0, seq: line.seq, status: line.seq === 1 ? ("aborted" as const) : ("failed" as const), by: 2, type: "E", message: "", traceback: "", where: null }
      : line,
  );
  assert.equal(opening(journalOf(failed).steps)!.name, "two");
  const torn = journalOf(lines.filter((line) => !(line.k === "pass_end" && line.seq >= 3)));
  assert.equal(opening(torn.steps)!.name, "print_module");
});

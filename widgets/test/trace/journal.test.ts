// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateRawSync } from "node:zlib";
import { unpacked } from "../../src/report/journals.ts";
import type { Line } from "../../src/trace/form.ts";
import { Journal } from "../../src/trace/journal.ts";
import { journalOf, linesOf, pipeline, random } from "./journals.ts";

const written = (lines: readonly Line[]): string => lines.map((line) => `${JSON.stringify(line)}\n`).join("");

test("a text that is told as changes of an earlier one is whole again", () => {
  const journal = new Journal();
  journal.add({ k: "text", id: "a", data: "one\ntwo\nthree" });
  journal.add({ k: "text", id: "b", base: "a", ops: [[0, 1], ["2", "two and a half"], [2, 3]] });
  journal.add({ k: "text", id: "c", base: "b", ops: [[1, 4]] });
  assert.deepEqual(journal.lines("c"), ["2", "two and a half", "three"]);
  assert.deepEqual(journal.lines("b"), ["one", "2", "two and a half", "three"]);
  assert.equal(journal.lines("b"), journal.lines("b"));
  assert.deepEqual(journal.lines(null), []);
  assert.throws(() => journal.lines("d"), /no text d/);
});

test("a long chain of changes is followed without running out of stack", () => {
  const journal = new Journal();
  journal.add({ k: "text", id: "0", data: "first" });
  for (let n = 1; n <= 20_000; n++) journal.add({ k: "text", id: String(n), base: String(n - 1), ops: [[0, 1]] });
  assert.deepEqual(journal.lines("20000"), ["first"]);
});

test("wherever a journal is torn, what was told before stands, and the step that went on did not finish", () => {
  const lines = linesOf(...pipeline(4));
  const text = written(lines);
  const ends = lines.map((_, k) => written(lines.slice(0, k + 1)).length - 1);
  for (const cut of [...ends, ...Array.from({ length: 40 }, () => random(text.length))]) {
    // a line is whole with its last character, also before the end of the line is written
    const whole = text.slice(0, text[cut] === "\n" ? cut + 1 : cut).split("\n").length - 1;
    const journal = new Journal().read(text.slice(0, cut));
    const ended = lines.slice(0, whole).filter(({ k }) => k === "pass_end").length;
    assert.equal(journal.steps.filter(({ end }) => end).length, ended);
    for (const step of journal.steps) assert.equal(step.status === "unfinished", !step.end);
  }
});

test("a journal that is damaged before its end is refused", () => {
  assert.throws(() => new Journal().read('{"k":"run"\n{"k":"end"}\n'));
});

test("kinds of lines that are not known yet tell nothing", () => {
  const journal = new Journal().read('{"k":"weather","c":0}\n{"k":"end"}\n');
  assert.deepEqual(journal.steps, []);
});

test("steps say what became of them", () => {
  const journal = journalOf(
    linesOf("a", [
      { name: "same", after: "a" },
      { name: "change", after: "b" },
      { name: "change", after: "c" },
      { name: "print_module", after: "int c;", phase: "codegen" },
    ]),
  );
  assert.deepEqual(
    journal.steps.map(({ number, name, status, words }) => [number, name, status, words]),
    [
      ["00", "same", "same", "no change"],
      ["01", "change", "changed", "1 line added, 1 removed"],
      ["02", "change#2", "changed", "1 line added, 1 removed"],
      ["03", "print_module", "translated", "into CUDA C"],
    ],
  );
  assert.equal(journal.steps[3]!.giver, journal.steps[2]);
  assert.equal(journal.steps[1]!.giver, undefined);
});

test("a step of a person's pass says of each line which of its methods changed it", () => {
  const journal = journalOf([...linesOf("a\nb\nc", [{ name: "own", after: "x\nc" }]), visits(0)]);
  assert.deepEqual(journal.steps[0]!.visits, { before: ["visit_A", "visit_B"], after: ["visit_A, visit_B"] });
  assert.equal(journalOf(linesOf("a", [{ name: "ours", after: "b" }])).steps[0]!.visits, null);
});

const visits = (seq: number): Line => {
  const methods = [{ name: "visit_A" }, { name: "visit_B" }];
  return { k: "note", c: 0, seq, key: "visits", value: { methods, before: [[0, 0], [1, 1]], after: [[0, 0], [0, 1]] } };
};

test("a chunk that was cut off with its page says nothing, and those before it all", async () => {
  const lines = linesOf(...pipeline(3));
  const chunks = lines.map((line) => ({ kind: "j" as const, text: JSON.stringify([line]) }));
  const grown = await unpacked([...chunks.slice(0, -1), { kind: "j", text: JSON.stringify([lines.at(-1)]).slice(0, -3) }]);
  assert.equal(grown.steps.length, 3);
  assert.equal(grown.compiles[0]!.end, undefined);
});

test("a packed journal is the one that was packed, and several stand beside each other", async () => {
  const packed = (lines: Line[]) => ({ kind: "z" as const, text: deflateRawSync(written(lines)).toString("base64") });
  const run = (script: string): Line => ({ k: "run", schema: 1, version: "0", script, argv: [], cwd: "", pid: 1, rank: null, started: "" });
  const journal = await unpacked([packed([run("one"), ...linesOf(...pipeline(3))]), packed([run("two"), ...linesOf(...pipeline(2))])]);
  assert.deepEqual(journal.runs.map(({ line, compiles }) => [line.script, compiles.map(({ number }) => number)]), [["one", [0]], ["two", [1]]]);
  assert.deepEqual(journal.compiles.map(({ steps }) => steps.length), [3, 2]);
});

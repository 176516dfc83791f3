// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Language } from "../../src/common/syntax.ts";
import type { Begin, Line } from "../../src/trace/form.ts";
import { Journal } from "../../src/trace/journal.ts";
import { Lines } from "../../src/trace/lines.ts";
import { ranges } from "../../src/trace/links.ts";

const random = (below: number): number => Math.floor(Math.random() * below);
const PHASES: Record<Language, string> = { tile: "tile", hidet: "lower", cuda: "codegen", ptx: "ptx", sass: "sass" };
const ORDER: Language[] = ["tile", "hidet", "cuda", "ptx", "sass"];

interface Made {
  language: Language;
  text: string;
  map: (number | null)[];
}

/** A journal of one compile: a cell of three lines, and a step for each of these texts. */
function journal(made: readonly Made[], more: Line[] = []): Lines {
  const all = new Journal();
  const ids = ["cell", "t0", ...made.map((_, n) => `t${n + 1}`)];
  const texts = ["def k(self):\n    a = load()\n    dot(a)", "head\na\nb", ...made.map(({ text }) => text)];
  texts.forEach((data, n) => all.add({ k: "text", id: ids[n]!, data }));
  const note = (seq: number, key: string, value: unknown): Line => ({ k: "note", c: 0, seq, key, value });
  made.forEach(({ language, map }, n) => {
    const begin: Begin = { k: "pass_begin", c: 0, seq: n, index: n, phase: PHASES[language], name: `step${n}`, occurrence: 1, parent: null, depth: 0, before: ids[n + 1]!, language };
    all.add(begin);
    if (n === 0) {
      all.add(note(0, "cell", { text: "cell", names: ["/home/ada/kernel.py"], numbers: [7, 8, 9] }));
      all.add(note(0, "lines", { from: "cell", to: "t0", map: [0, 1, 2] }));
    }
    all.add({ k: "pass_end", c: 0, seq: n, after: ids[n + 2]!, changed: true, rebuilt: false, ns: 1, self_ns: 1, add: null, del: null });
    // the first step has the cell's map in this journal: its own stands in a step of its own
    all.add(note(n, n === 0 ? "lines_of_edit" : "lines", { from: ids[n + 1]!, to: ids[n + 2]!, map }));
  });
  more.forEach((line) => all.add(line));
  return new Lines(all, all.compiles[0]!);
}

const CHAIN: Made[] = [
  { language: "tile", text: "head\na\nb\nb'", map: [0, 1, 2, 2] },
  { language: "hidet", text: "def\nx\ny\nz", map: [0, 1, 2, 3] },
  { language: "cuda", text: "#include\nx;\ny;\ny;\nz;", map: [null, 1, 2, 2, 3] },
  { language: "ptx", text: ".target\nld\nmma\nmma", map: [null, 1, 3, 4] },
  { language: "sass", text: "LDG\nHMMA\nHMMA\nNOP", map: [1, 2, 3, null] },
];

test("case 83: a line of each language leads to those of every other one, and back", () => {
  const lines = journal(CHAIN);
  const ids = Object.fromEntries(lines.layers.map(({ label, id }) => [label, id]));
  assert.deepEqual(Object.keys(ids), ["kernel.py", "Tile IR", "Hidet IR", "CUDA C", "PTX", "SASS"]);
  const all = (from: string, line: number): number[][] => Object.values(ids).map((to) => lines.related(ids[from]!, [line], to));
  assert.deepEqual(all("SASS", 1), [[2], [2], [2], [3], [2], [1]]);
  assert.deepEqual(all("kernel.py", 2), [[2], [2, 3], [2, 3], [2, 3, 4], [2, 3], [1, 2]]);
  assert.deepEqual(all("CUDA C", 1), [[1], [1], [1], [1], [1], [0]]);
});

test("a line that nothing was made from leads nowhere", () => {
  const lines = journal(CHAIN);
  const [cuda, sass] = [lines.layers[3]!.id, lines.layers[5]!.id];
  assert.deepEqual(lines.related(cuda, [0], "cell"), []);
  assert.deepEqual(lines.related(sass, [3], cuda), []);
  assert.deepEqual(lines.related("unknown", [0], cuda), []);
  assert.deepEqual(lines.related(cuda, [0], cuda), [0]);
});

test("the lines of the person have the numbers of their editor", () => {
  const [cell] = journal(CHAIN).layers;
  assert.deepEqual(cell!.numbers, [7, 8, 9]);
  assert.equal(cell!.lines[2], "    dot(a)");
});

test("an edited source leads on from the generated one, and is what is shown", () => {
  const edited: Line[] = [
    { k: "text", id: "edited", data: "#include\n// mine\nx;" },
    { k: "codegen", c: 0, seq: 2, source: "t3", compiled: "edited", tag: "PATCHED", path: null, messages: [] },
    { k: "note", c: 0, seq: 2, key: "lines_of_edit", value: { from: "t3", to: "edited", map: [0, null, 1] } },
  ];
  const lines = journal(CHAIN.slice(0, 3), edited);
  assert.equal(lines.layers.at(-1)!.id, "edited");
  assert.deepEqual(lines.related("edited", [2], "cell"), [1]);
  assert.deepEqual(lines.related("cell", [1], "edited"), [2]);
});

test("a pass that makes a text again ends no search", () => {
  const again: Line[] = [{ k: "note", c: 0, seq: 1, key: "lines_of_edit", value: { from: "t2", to: "t0", map: [0, 1, 2] } }];
  const lines = journal([CHAIN[0]!, { language: "tile", text: "head", map: [0] }], again);
  assert.deepEqual(lines.related("t2", [0], "cell"), [0]);
});

test("of random chains, every line is found by exactly those that it was made from", () => {
  for (let n = 0; n < 50; n++) {
    let before = 3;
    const made = ORDER.map((language): Made => {
      const count = 1 + random(20);
      const map = Array.from({ length: count }, () => (random(4) ? random(before) : null));
      before = count;
      return { language, text: map.map((_, line) => `${language} ${line}`).join("\n"), map };
    });
    const lines = journal(made);
    const last = made.length;
    const origin = (line: number): number | null => made.reduceRight<number | null>((at, { map }) => (at === null ? null : map[at]!), line);
    const origins = made[last - 1]!.map.map((_, line) => origin(line));
    for (const [line, from] of origins.entries()) assert.deepEqual(lines.related(`t${last}`, [line], "t0"), from === null ? [] : [from]);
    for (let line = 0; line < 3; line++) {
      const expected = [...origins.keys()].filter((at) => origins[at] === line);
      assert.deepEqual(lines.related("t0", [line], `t${last}`), expected);
    }
  }
});

test("numbers of lines are said in few words", () => {
  assert.equal(ranges([7]), "7");
  assert.equal(ranges([3, 4, 5, 9]), "3–5, 9");
  assert.equal(ranges([3, 4, 5, 9, 20, 22, 23]), "3–5, 9 +3");
});

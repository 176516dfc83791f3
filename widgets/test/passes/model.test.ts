// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { Kind } from "../../src/common/textdiff.ts";
import { BESIDE, blocks, FOLD, type Pass, type PassMessage, PassText, step } from "../../src/passes/model.ts";
import sample from "./sample.json";

const passes = sample.passes as Pass[];
const texts = new Map(
  (sample.messages as PassMessage[]).map((message) => [message.index, new PassText(message, passes[message.index]!.status)]),
);
const named = (name: string): PassText => texts.get(passes.findIndex((pass) => pass.name === name))!;
const kinds = (text: PassText) => new Set(text.rows.map(({ kind }) => kind));

test("the old text is put together from the new one and the lines that differ", () => {
  const first = texts.get(0)!;
  assert.equal(first.before.length, first.after.length);
  assert.ok(first.before.some((line) => line.includes("row: i32 =")));
  assert.ok(first.after.some((line) => line.includes("row: Let[i32] =")));
  assert.equal(first.before.filter((line, index) => line !== first.after[index]).length, passes[0]!.added);
});

test("what is far from a change is folded, and a fold opens to the lines it hides", () => {
  const text = named("layout_inference");
  const folds = text.rows.filter(({ kind }) => kind === FOLD);
  assert.ok(folds.length > 0);
  const count = text.rows.length;
  text.open(folds[0]!);
  assert.equal(text.rows.length, count - 1 + folds[0]!.hidden);
  text.expand(true);
  assert.ok(!kinds(text).has(FOLD));
  text.expand(false);
  assert.equal(text.rows.length, count);
});

test("no fold hides fewer than three lines, and three lines stay around each change", () => {
  for (const text of texts.values()) {
    text.rows.forEach(({ kind, hidden }, index) => {
      if (kind !== FOLD) return;
      assert.ok(hidden >= 3);
      for (const row of [...text.rows.slice(Math.max(index - 3, 0), index), ...text.rows.slice(index + 1, index + 4)]) {
        assert.equal(row.kind, Kind.Same);
      }
    });
  }
});

test("a pass that changes nothing shows its whole text", () => {
  const text = named("let_propagation");
  assert.deepEqual(kinds(text), new Set([Kind.Same]));
  assert.equal(text.rows.length, text.after.length);
  assert.deepEqual(text.before, text.after);
});

test("where the language changes the texts stand beside each other and are not compared", () => {
  const text = named("generate_ir_module");
  assert.deepEqual(kinds(text), new Set([BESIDE]));
  assert.equal(text.rows.length, Math.max(text.before.length, text.after.length));
  assert.deepEqual(text.changes(), []);
});

test("revealing a line opens the fold over it", () => {
  const text = named("layout_inference");
  text.expand(false);
  const fold = text.rows.find(({ kind }) => kind === FOLD)!;
  const row = text.reveal("right", fold.right + 1);
  assert.equal(text.rows[row]!.right, fold.right + 1);
});

test("the steps go to the next changed pass, or to any, and stay at the ends", () => {
  const changed = passes.flatMap(({ status }, index) => (status === "changed" ? [index] : []));
  assert.equal(step(passes, changed[0]!, 1, true), changed[1]);
  assert.equal(step(passes, changed[1]!, -1, true), changed[0]);
  assert.equal(step(passes, 0, 1, false), 1);
  assert.equal(step(passes, changed.at(-1)!, 1, true), changed.at(-1));
  assert.equal(step(passes, 0, -1, false), 0);
});

test("five blocks show how large a change is and of what it consists", () => {
  assert.deepEqual(blocks(0, 0), []);
  assert.deepEqual(blocks(1, 0), ["added", "empty", "empty", "empty", "empty"]);
  assert.deepEqual(blocks(0, 100), Array(5).fill("removed"));
  for (let added = 0; added < 40; added++) {
    for (let removed = 0; removed < 40; removed++) {
      const shown = blocks(added, removed);
      if (!added && !removed) continue;
      assert.equal(shown.length, 5);
      if (added + removed > 2) assert.deepEqual([shown.includes("added"), shown.includes("removed")], [added > 0, removed > 0]);
    }
  }
});

// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Language } from "../../src/common/syntax.ts";
import { Kind } from "../../src/common/textdiff.ts";
import { Show } from "../../src/trace/diffalign.ts";
import { Aligner } from "../../src/trace/diffaligner.ts";
import { inOrder, pinsFromText, type Pins, pinsToText, withoutPin, withPin } from "../../src/trace/diffpins.ts";
import { DiffText, type Row, type Settings } from "../../src/trace/difftext.ts";

const FIRST: Settings = { layout: "split", context: 3, indents: true, renames: false };

function diff(before: readonly string[], after: readonly string[], settings: Partial<Settings> = {}, pins: Pins = [], language: Language = "tile"): DiffText {
  return new DiffText({ before, after, languages: [language, language], labels: ["a", "b"], isTranslation: false }, { ...FIRST, ...settings }, pins);
}

const random = (below: number): number => Math.floor(Math.random() * below);
const replaced = (lines: readonly string[], at: number, line: string): string[] => lines.map((old, n) => (n === at ? line : old));
const chain = (count: number, from = 0): string[] =>
  Array.from({ length: count }, (_, n) => `t_${n + from + 1}: f16[8, ${n % 5}] = add(t_${n + from}, t_${Math.max(n + from - 3, from)})`);
const shows = ({ rows }: DiffText): Show[] => [...new Set(rows.map(({ show }) => show))].sort();
const folds = ({ rows }: DiffText): Row[] => rows.filter(({ show }) => show === Show.Fold);
const NO_COUNTS = { added: 0, removed: 0, indented: 0, renamed: 0, moved: 0 };

function everyLineIsShown(text: DiffText): void {
  const lines = (side: "left" | "right") => text.rows.flatMap((row) => (row[side] >= 0 && (row.shows === "both" || row.shows === side) ? [row[side]] : []));
  assert.deepEqual(lines("left"), [...text.texts.before.keys()]);
  assert.deepEqual(lines("right"), [...text.texts.after.keys()]);
}

test("what the diff calls a line is what its row shows", () => {
  const names = Object.entries(Kind).filter(([name]) => Number.isNaN(Number(name)));
  assert.equal(names.length, 5);
  for (const [name, kind] of names) assert.equal(Show[name as keyof typeof Show], kind);
});

test("case 70: one line changed of a thousand that repeat is one line added and one removed", () => {
  const before = Array.from({ length: 1000 }, (_, n) => `fma(acc_${n % 30}, ${n % 15})`);
  const after = replaced(before, random(1000), "fma(acc_0, changed)");
  assert.deepEqual(diff(before, after).counts, { ...NO_COUNTS, added: 1, removed: 1 });
  assert.deepEqual(diff(["a"], ["a", "++i;"]).counts, { ...NO_COUNTS, added: 1 });
});

test("case 71: lines are paired by similarity and in order, what is not alike is beside nothing of its own", () => {
  const before = ["x = load(g, offset=1)", "y = mma(a, b, c)", "sync_threads()"];
  const after = ["print('hello')", "x = load(g, offset=2)", "y = mma(a, b, d)", "store(g, y, offset=7)"];
  const pairs = diff(before, after).rows.filter(({ show }) => show === Show.Edited).map(({ left, right }) => [left, right]);
  assert.deepEqual(pairs, [[0, 1], [1, 2]]);
});

test("case 72: where all names are shifted by one the added line is left, and the rest is folded with its number", () => {
  const before = chain(200);
  const after = ["t_1: f16[8, 8] = load(g)", ...chain(200, 1).map((line) => line.replaceAll("t_1:", "t_2:"))];
  const text = diff(before, after, { renames: true });
  assert.deepEqual(text.counts, { ...NO_COUNTS, added: 1, renamed: 200 });
  assert.deepEqual(text.rows.filter(({ show }) => show === Show.Added).map(({ right }) => right), [0]);
  assert.deepEqual(folds(text).map(({ hidden, renamed }) => [hidden, renamed]), [[197, 197]]);
  const plain = diff(before, after);
  assert.equal(plain.counts.renamed, 0);
  assert.ok(plain.counts.added > 100);
});

test("an operand that was exchanged is no renaming, nor is another operation", () => {
  const before = chain(60);
  const after = before.map((line) => line.replaceAll("t_", "u_"));
  after[20] = after[20]!.replace("add(u_20", "add(u_19");
  after[40] = after[40]!.replace("add(", "sub(");
  const text = diff(before, after, { renames: true });
  assert.deepEqual(text.counts, { ...NO_COUNTS, added: 2, removed: 2, renamed: 58 });
  assert.deepEqual(text.rows.filter(({ show }) => show === Show.Edited).map(({ left }) => left), [20, 40]);
});

test("case 73: a body that went into a loop is re-indented, and counted apart", () => {
  const body = Array.from({ length: 12 }, (_, n) => `${"    ".repeat(1 + (n % 3))}step(${n})`);
  const before = ["def f():", ...body, "    done()"];
  const after = ["def f():", "    for i in range(4):", ...body.map((line) => `    ${line}`), "    done()"];
  assert.deepEqual(diff(before, after).counts, { ...NO_COUNTS, added: 1, indented: 12 });
  assert.deepEqual(shows(diff(before, after)), [Show.Same, Show.Added, Show.Indented]);
  const exact = diff(before, after, { indents: false });
  assert.deepEqual(exact.counts, { ...NO_COUNTS, added: 13, removed: 12 });
});

test("braces at the depth of other braces do not tear a re-indented body apart", () => {
  const before = ["{", "  a {", "    x", "  }", "  b", "  c {", "    y", "  }", "}"];
  const after = ["{", "  for {", ...before.slice(1, -1).map((line) => `  ${line}`), "  }", "}"];
  assert.deepEqual(diff(before, after, {}, [], "cuda").counts, { ...NO_COUNTS, added: 2, indented: 6 });
});

test("case 74: a block of a hundred lines that moved is moved, with both places", () => {
  const line = (n: number): string => `t_${n}: f16[8] = op_${n * 7919 % 1000}(t_${n - 1})`;
  const rest = Array.from({ length: 300 }, (_, n) => line(n));
  const block = Array.from({ length: 100 }, (_, n) => line(5000 + n));
  const text = diff([...rest.slice(0, 40), ...block, ...rest.slice(40)], [...rest.slice(0, 250), ...block, ...rest.slice(250)]);
  assert.deepEqual(text.counts, { ...NO_COUNTS, moved: 100 });
  assert.deepEqual(text.moves, [{ left: 40, right: 250, count: 100 }]);
  assert.deepEqual(text.moveAt({ side: "right", line: 299 }), text.moves[0]);
  assert.equal(text.moveAt({ side: "right", line: 350 }), undefined);
});

test("two lines, or a few braces, are not a moved block", () => {
  assert.deepEqual(diff(["}", "}", "}", "a", "b", "c", "d", "e"], ["a", "b", "c", "d", "e", "}", "}", "}"]).moves, []);
});

test("case 75: as much context as is asked for stays around a change", () => {
  const before = Array.from({ length: 100 }, (_, n) => `line ${n}`);
  const after = replaced(before, 50, "changed");
  for (const [context, rows] of [[0, 3], [3, 9], [10, 23], [Infinity, 100]] as const) {
    const text = diff(before, after, { context });
    assert.equal(text.rows.length, rows);
    assert.equal(folds(text).reduce((sum, { hidden }) => sum + hidden, 0), context === Infinity ? 0 : 99 - 2 * context);
    text.arrange("split", 3);
    assert.equal(text.rows.length, 9);
  }
});

test("case 75: each click opens twenty lines at the chosen end until none is left, and collapsing brings all back", () => {
  const before = Array.from({ length: 300 }, (_, n) => `line ${n}`);
  const after = replaced(replaced(before, 0, "first"), 299, "last");
  const text = diff(before, after);
  const hidden = (): number => folds(text)[0]?.hidden ?? 0;
  assert.equal(hidden(), 292);
  text.open(folds(text)[0]!, "top");
  assert.deepEqual(text.rows.slice(4, 24).map(({ right }) => right), Array.from({ length: 20 }, (_, n) => 4 + n));
  text.open(folds(text)[0]!, "bottom");
  assert.deepEqual(text.rows.slice(-24, -4).map(({ right }) => right), Array.from({ length: 20 }, (_, n) => 276 + n));
  for (let clicks = 2; hidden(); clicks++) {
    assert.equal(hidden(), 292 - 20 * clicks);
    text.open(folds(text)[0]!, clicks % 2 ? "top" : "bottom");
  }
  everyLineIsShown(text);
  text.expand(false);
  assert.equal(hidden(), 292);
  text.expand(true);
  everyLineIsShown(text);
  assert.ok(text.isExpanded);
});

test("case 75: one fold opens and closes again by itself", () => {
  const before = Array.from({ length: 90 }, (_, n) => `line ${n}`);
  const text = diff(before, replaced(replaced(before, 30, "a"), 60, "b"));
  const rows = text.rows.length;
  text.toggle(text.rows.findIndex(({ show }) => show === Show.Fold));
  assert.equal(folds(text).length, 2);
  text.toggle(3);
  assert.equal(text.rows.length, rows);
});

test("case 75: no fold hides two lines or fewer, whatever is opened", () => {
  for (let round = 0; round < 200; round++) {
    const before = Array.from({ length: 40 + random(80) }, (_, n) => `line ${n}`);
    const after = before.map((line) => (random(12) ? line : `${line} changed`));
    const text = diff(before, after, { context: random(6), layout: random(2) ? "split" : "unified" });
    for (let clicks = 0; clicks < 6; clicks++) {
      for (const { hidden } of folds(text)) assert.ok(hidden >= 3);
      const fold = folds(text)[random(folds(text).length)];
      if (fold) text.open(fold, (["top", "bottom", "all"] as const)[random(3)]!);
    }
    text.expand(true);
    everyLineIsShown(text);
  }
});

test("in one column what was removed stands above what was added, and both numbers go up", () => {
  for (let round = 0; round < 200; round++) {
    const before = Array.from({ length: random(30) }, () => `line ${random(9)}`);
    const after = Array.from({ length: random(30) }, () => `${random(3) ? "" : "  "}line ${random(9)}`);
    const text = diff(before, after, { layout: "unified", context: Infinity, renames: random(2) === 0 });
    everyLineIsShown(text);
    text.rows.forEach(({ shows: now }, index) => assert.ok(!(now === "left" && text.rows[index - 1]?.shows === "right")));
    text.arrange("split", Infinity);
    everyLineIsShown(text);
  }
});

test("revealing a line opens the fold over it, on either side and in one column", () => {
  const before = Array.from({ length: 90 }, (_, n) => `line ${n}`);
  for (const layout of ["split", "unified"] as const) {
    const text = diff(before, ["new", ...replaced(before, 60, "b")], { layout });
    const row = text.reveal({ side: "left", line: 30 });
    assert.equal(text.rows[row]!.left, 30);
    assert.equal(text.rows[row]!.right, 31);
    assert.equal(text.reveal({ side: "right", line: 999 }), -1);
  }
});

test("two languages stand beside each other and are not compared", () => {
  const texts = { before: ["a", "b"], after: ["a", "x", "y"], languages: ["tile", "hidet"], labels: ["", ""], isTranslation: true } as const;
  const text = new DiffText(texts, { ...FIRST, layout: "unified" });
  assert.deepEqual(shows(text), [Show.Beside]);
  assert.deepEqual(text.counts, NO_COUNTS);
  assert.deepEqual(text.changes(), []);
  everyLineIsShown(text);
});

test("case 7: where the language changes a line stands beside the first that was made of it, in order", () => {
  const texts = { before: ["a", "b", "c"], after: ["x", "a1", "a2", "b1", "c1", "a3"], languages: ["tile", "hidet"], labels: ["", ""], isTranslation: true } as const;
  const rows = (origins: (number | null)[]) => new DiffText({ ...texts, origins }, FIRST).rows.map(({ left, right }) => [left, right]);
  assert.deepEqual(rows([null, 0, 0, 1, 2, 0]), [[-1, 0], [0, 1], [-1, 2], [1, 3], [2, 4], [-1, 5]]);
  assert.deepEqual(rows([null, 2, 2, 0, 1, 1]), [[-1, 0], [-1, 1], [-1, 2], [0, 3], [1, 4], [2, 5]]);
  for (let round = 0; round < 100; round++) {
    const before = Array.from({ length: 1 + random(20) }, () => "old");
    const after = Array.from({ length: random(40) }, () => "new");
    const origins = after.map(() => (random(4) ? random(before.length) : null));
    everyLineIsShown(new DiffText({ ...texts, before, after, origins }, FIRST));
  }
});

test("case 77: a pin that would cross another, or a line that is pinned, is refused with the reason", () => {
  const one = withPin([], { left: 11, right: 39 }) as Pins;
  const two = withPin(one, { left: 3, right: 5 }) as Pins;
  assert.deepEqual(inOrder(two), [{ left: 3, right: 5 }, { left: 11, right: 39 }]);
  assert.equal(withPin(two, { left: 20, right: 20 }), "21 ⇄ 21 refused: it crosses the pin 12 ⇄ 40");
  assert.equal(withPin(two, { left: 11, right: 50 }), "12 ⇄ 51 refused: line 12 is pinned as 12 ⇄ 40");
  const three = withPin(two, { left: 7, right: 9 }) as Pins;
  assert.deepEqual(withoutPin(three), two);
  assert.deepEqual(withoutPin(three, { side: "right", line: 39 }), [{ left: 3, right: 5 }, { left: 7, right: 9 }]);
});

test("case 77: pins go into a link and come back, but for what does not fit the texts", () => {
  const pins = [{ left: 11, right: 39 }, { left: 3, right: 5 }];
  assert.equal(pinsToText(pins), "12-40.4-6");
  assert.deepEqual(pinsFromText("12-40.4-6", 12, 40), pins);
  assert.deepEqual(pinsFromText("12-40.4-6.4-7.99-5", 12, 39), [{ left: 3, right: 5 }]);
  assert.deepEqual(pinsFromText("nonsense", 9, 9), []);
});

test("case 77: the choosing of two lines goes on, chooses again, refuses, and can be left at any time", () => {
  const row = (left: number, right: number): Row => ({ show: Show.Edited, left, right, shows: "both", hidden: 0, renamed: 0 });
  const aligner = new Aligner();
  assert.equal(aligner.isOn, false);
  assert.equal(aligner.press().words, "Click the line on the left, or ↑ ↓ and Enter; Esc to leave");
  assert.equal(aligner.press().words, "");
  aligner.press();
  assert.deepEqual(aligner.pick(row(-1, 4), "right"), { words: "there is no line on the left here", isRefusal: true });
  aligner.pick(row(6, 6), "right");
  assert.equal(aligner.side, "right");
  assert.equal(aligner.press().words, "Click the line on the right that belongs to 7, or ↑ ↓ and Enter; Esc to leave");
  aligner.pick(row(8, 8), "left");
  assert.deepEqual(aligner.pick(row(3, 4), undefined), { words: "pinned 9 ⇄ 5", isRefusal: false, pin: { left: 8, right: 4 } });
  assert.equal(aligner.text, "9-5");
  aligner.press();
  aligner.pick(row(2, 2), undefined);
  assert.ok(aligner.pick(row(9, 9), "right").isRefusal);
  assert.equal(aligner.isOn, false);
  assert.equal(aligner.takeBack({ side: "left", line: 0 }).words, "took back 9 ⇄ 5");
  assert.deepEqual(aligner.takeBack(undefined), { words: "there is no pin", isRefusal: true });
  aligner.press();
  aligner.leave();
  assert.equal(aligner.isOn, false);
});

test("case 77: pinned lines stand side by side, and equal ones are equal", () => {
  for (let round = 0; round < 300; round++) {
    const before = Array.from({ length: 12 + random(12) }, () => `x_${random(6)} = f(${random(4)})`);
    const after = Array.from({ length: 12 + random(12) }, () => `x_${random(6)} = f(${random(4)})`);
    let pins: Pins = [];
    for (let tries = 0; tries < 4; tries++) {
      const more = withPin(pins, { left: random(before.length), right: random(after.length) });
      if (typeof more !== "string") pins = more;
    }
    const text = diff(before, after, { context: Infinity, renames: random(2) === 0, indents: random(2) === 0 }, pins);
    everyLineIsShown(text);
    for (const { left, right } of pins) {
      const row = text.rows[text.rowOf({ side: "left", line: left })]!;
      assert.equal(row.right, right);
      assert.equal(row.show === Show.Same, before[left] === after[right]);
    }
  }
});

test("what a row says of its lines is so, and every line is counted once, whatever changed and is switched on", () => {
  for (let round = 0; round < 400; round++) {
    const before = Array.from({ length: random(60) }, (_, n) => `${"  ".repeat(random(3))}t_${n} = op_${random(4)}(t_${random(n + 1)})`);
    let after = before.flatMap((line) => (random(8) ? [line] : random(2) ? [] : [line.replace("op", "of"), "added()"]));
    if (random(2)) after = after.map((line) => line.replaceAll("t_", "u_"));
    if (random(2)) after = after.map((line, n) => (n % 20 < 10 ? `    ${line}` : line));
    if (random(2)) after = [...after.slice(20), ...after.slice(0, 20)];
    const text = diff(before, after, { context: Infinity, indents: random(2) === 0, renames: random(2) === 0 });
    everyLineIsShown(text);
    let same = 0;
    for (const { show, left, right } of text.rows) {
      const [old, now] = [before[left] ?? "", after[right] ?? ""];
      if (show === Show.Same) same++;
      if (show === Show.Same) assert.equal(old, now);
      if (show === Show.Indented) assert.ok(old !== now && old.trim() === now.trim());
      if (show === Show.Renamed) assert.equal(old.trim().replaceAll("t_", "u_").replace(/\d+/g, ""), now.trim().replaceAll("t_", "u_").replace(/\d+/g, ""));
    }
    const { added, removed, moved, indented, renamed } = text.counts;
    assert.equal(same + indented + renamed + moved + removed, before.length);
    assert.equal(same + indented + renamed + moved + added, after.length);
    for (const { left, right, count } of text.moves) {
      const lines = (of: string[], at: number) => of.slice(at, at + count).map((line) => line.trim());
      assert.deepEqual(lines(before, left), lines(after, right));
    }
  }
});

test("what is looked for is found in the new text, and in the old one where it is gone", () => {
  const text = diff(["Alpha", "beta"], ["alpha", "gamma"]);
  assert.deepEqual(text.find("alpha"), [{ side: "right", line: 0 }, { side: "left", line: 0 }]);
  assert.deepEqual(text.find("BETA"), [{ side: "left", line: 1 }]);
  assert.deepEqual(text.find(""), []);
});

// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { align, hunks, Kind, type Run, spans } from "../src/common/textdiff.ts";

interface LineCase {
  name: string;
  before: string[];
  after: string[];
  runs: [number, number, number, number][];
}

interface TokenCase {
  left: string;
  right: string;
  spans: [[number, number][], [number, number][]];
}

// another folder of vectors may be named: tests/test_textdiff.py makes fresh ones at each run
const folder = process.env.TILEKIT_VECTORS ?? "test/vectors";
const read = <T>(name: string): T[] => JSON.parse(readFileSync(`${folder}/${name}.json`, "utf8")) as T[];
const flat = (runs: Run[]) => runs.map(({ kind, left, right, count }) => [kind, left, right, count]);

test("lines are aligned as the vectors say", () => {
  for (const { name, before, after, runs } of read<LineCase>("lines")) assert.deepEqual(flat(align(before, after)), runs, name);
});

test("tokens are marked as the vectors say", () => {
  for (const { left, right, spans: expected } of read<TokenCase>("tokens")) assert.deepEqual(spans(left, right), expected, `${left} and ${right}`);
});

/** The textbook's table. */
function lcsLength(a: string[], b: string[]): number {
  let above = new Array<number>(b.length + 1).fill(0);
  for (const item of a) {
    const row = [0];
    b.forEach((other, j) => row.push(item === other ? above[j]! + 1 : Math.max(above[j + 1]!, row[j]!)));
    above = row;
  }
  return above[b.length]!;
}

test("case 70: of ten thousand random pairs none has a shorter diff", () => {
  const random = (below: number): number => Math.floor(Math.random() * below);
  for (let round = 0; round < 10_000; round++) {
    const [before, after] = [0, 1].map(() => Array.from({ length: random(40) }, () => "abcdefgh"[random(1 + (round % 8))]!)) as [string[], string[]];
    const kept = align(before, after).reduce((sum, { kind, count }) => sum + (kind === Kind.Same ? count : 0), 0);
    assert.equal(kept, lcsLength(before, after), JSON.stringify([before, after]));
  }
});

test("a text of a hundred thousand equal lines is done at once", () => {
  const many = Array<string>(100_000).fill("fma()");
  const twice = [...many, ...many];
  const began = process.cpuUsage();
  const found = hunks(many, twice);
  const { user } = process.cpuUsage(began); // what others do on the machine does not count
  assert.ok(user < 1_000_000);
  assert.equal(found.length, 1);
});

// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { align, hunks, type Run, spans } from "../src/common/textdiff.ts";

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

for (const { name, before, after, runs } of read<LineCase>("lines")) {
  test(`lines: ${name}`, () => assert.deepEqual(flat(align(before, after)), runs));
}

for (const { left, right, spans: expected } of read<TokenCase>("tokens")) {
  test(`tokens: ${JSON.stringify(left)} and ${JSON.stringify(right)}`, () => assert.deepEqual(spans(left, right), expected));
}

test("a text of a hundred thousand equal lines is done at once", () => {
  const many = Array<string>(100_000).fill("fma()");
  const began = performance.now();
  const found = hunks(many, [...many, ...many]);
  assert.ok(performance.now() - began < 1000);
  assert.equal(found.length, 1);
});

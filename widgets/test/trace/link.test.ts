// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Place, read, written } from "../../src/trace/link.ts";

test("case 80: an address says where one is, and is read as it was written", () => {
  const place: Place = { p: 17, l: 42, x: 3, q: "a&b=#c %", b: true, t: "run2_tile", k: 1, s: "failed", d: "u_p12-15.40-44", ab: [0, 2], run: 1 };
  assert.deepEqual(read(`#${written(place)}`), place);
  assert.equal(written({ p: 17, l: 42 }), "p=17&l=42");
  assert.deepEqual(read(written({})), {});
});

test("what an address says wrongly it does not say", () => {
  assert.deepEqual(read("#p=x&l=-1&ab=1&b=2&q=%E0%A4%A&k=1e3&nonsense&=3"), {});
  assert.deepEqual(read(""), {});
});

// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Language, tokens } from "../src/common/syntax.ts";

const colored = (line: string, language: Language) =>
  tokens(line, language).map(({ start, stop, style }) => `${style.slice(3)}:${line.slice(start, stop)}`);

test("in the IR a double slash divides", () => {
  assert.deepEqual(colored("for c in range((n + i32(255)) // i32(256)):", "ir"), [
    "k:for", "k:in", "f:range", "t:i32", "n:255", "t:i32", "n:256",
  ]);
});

test("in Hidet IR a line may be a remark", () => {
  assert.deepEqual(colored("    // t: f16[4] = load(g)", "ir"), ["c:    // t: f16[4] = load(g)"]);
});

test("in CUDA C a double slash begins a remark, and a string holds what it likes", () => {
  assert.deepEqual(colored('  int32_t i = f("// no"); // yes', "cuda"), ["t:int32_t", "f:f", 's:"// no"', "c:// yes"]);
  assert.deepEqual(colored("#pragma unroll", "cuda"), ["m:#pragma unroll"]);
});

test("decorators and floats of the IR", () => {
  assert.deepEqual(colored('@kernel(init=f32("-inf"), x=1.5e-3)  # why', "ir"), [
    "m:@kernel", "t:f32", 's:"-inf"', "n:1.5e-3", "c:# why",
  ]);
});

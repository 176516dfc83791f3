// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Language, names, tokens } from "../src/common/syntax.ts";

const colored = (line: string, language: Language) =>
  tokens(line, language).map(({ start, stop, style }) => `${style.slice(3)}:${line.slice(start, stop)}`);

test("in tile IR a double slash divides", () => {
  assert.deepEqual(colored("for c in range((n + i32(255)) // i32(256)):", "tile"), [
    "k:for", "k:in", "f:range", "t:i32", "n:255", "t:i32", "n:256",
  ]);
});

test("in Hidet IR a line may be a remark", () => {
  assert.deepEqual(colored("    // t: f16[4] = load(g)", "hidet"), ["c:    // t: f16[4] = load(g)"]);
});

test("in CUDA C a double slash begins a remark, and a string holds what it likes", () => {
  assert.deepEqual(colored('  int32_t i = f("// no"); // yes', "cuda"), ["t:int32_t", "f:f", 's:"// no"', "c:// yes"]);
  assert.deepEqual(colored("#pragma unroll", "cuda"), ["m:#pragma unroll"]);
});

test("decorators and floats of the IR", () => {
  assert.deepEqual(colored('@kernel(init=f32("-inf"), x=1.5e-3)  # why', "tile"), [
    "m:@kernel", "t:f32", 's:"-inf"', "n:1.5e-3", "c:# why",
  ]);
});

test("in PTX directives, opcodes and special registers have their colors, registers are names", () => {
  assert.deepEqual(colored("\t@%p1 ld.global.nc.b32 \t%r12, [%rd3+16]; // x", "ptx"), ["k:ld.global.nc.b32", "n:16", "c:// x"]);
  assert.deepEqual(colored("\tmov.u32 \t%r1, %tid.x;", "ptx"), ["k:mov.u32", "t:%tid.x"]);
  assert.deepEqual(colored(".reg .b32 %r<5>;", "ptx"), ["m:.reg", "m:.b32", "n:5"]);
  assert.deepEqual(colored("$L__BB0_2:", "ptx"), []);
});

test("in SASS opcodes and fixed registers have their colors", () => {
  assert.deepEqual(colored("        /*0010*/                   S2R R0, SR_CTAID.X ;", "sass"), ["c:/*0010*/", "k:S2R", "t:SR_CTAID.X"]);
  assert.deepEqual(colored("  @!P0 LDG.E.128 R4, [R2.64+0x10], !PT ;", "sass"), ["k:LDG.E.128", "n:0x10", "t:PT"]);
});

const named = (line: string, language: Language) => names(line, language).map(({ text, isFixed }) => (isFixed ? `=${text}` : text));

test("operations, fields and the names of arguments are fixed, variables are not", () => {
  assert.deepEqual(named("t_1: f16[4, n] = load(g.x, dims=axes, init=f32(0))  # of t", "tile"), [
    "t_1", "n", "=load", "g", "=x", "=dims", "axes", "=init", "of", "t",
  ]);
  assert.deepEqual(named('int32_t i = tk::min(a, "a b");', "cuda"), ["i", "=tk", "=min", "a"]);
});

test("what is a name in machine code", () => {
  assert.deepEqual(named("\t@%p1 bra \t$L__BB0_2;", "ptx"), ["%p1", "=bra", "$L__BB0_2"]);
  assert.deepEqual(named("\tld.global.b32 \t%r1, [%rd2+4];", "ptx"), ["=ld", "%r1", "%rd2"]);
  assert.deepEqual(named("  @!P0 IADD3 R4, R2, UR5, RZ ;", "sass"), ["P0", "R4", "R2", "UR5"]);
});

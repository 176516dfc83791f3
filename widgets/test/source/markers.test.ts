// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { ChangeSet, Text } from "@codemirror/state";
import { type Marker, place } from "../../src/source/markers.ts";
import sample from "./sample.json";

const compiled = Text.of(sample.text.split("\n"));
const markers = sample.markers as Marker[];
const unchanged = ChangeSet.empty(compiled.length);
const covered = (doc: Text, { from, to }: { from: number; to: number }) => doc.sliceString(from, to);

test("a marker with a column covers the word there", () => {
  assert.equal(covered(compiled, place(markers, compiled, unchanged)[0]!), "smem_bb");
});

test("a marker without a column covers its line behind the indent", () => {
  assert.equal(covered(compiled, place(markers, compiled, unchanged)[1]!), "float lane = threadIdx.x % 32;");
});

test("a marker moves with the text that was typed since the compile", () => {
  const typed = ChangeSet.of({ from: 0, insert: "// a new first line\n" }, compiled.length);
  const doc = typed.apply(compiled);
  assert.equal(covered(doc, place(markers, compiled, typed)[0]!), "smem_bb");
});

test("a marker beyond the end is at the end, and one of the whole source at its first line", () => {
  const [beyond, whole] = place(
    [
      { line: 999, column: 40, severity: "error", message: "" },
      { line: 0, column: 0, severity: "error", message: "" },
    ],
    compiled,
    unchanged,
  );
  assert.equal(beyond!.from, compiled.length);
  assert.equal(whole!.from, 0);
});

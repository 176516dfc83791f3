// SPDX-License-Identifier: Apache-2.0
// Journals for tests, made of texts and of what each step does to them.
import type { Begin, Line } from "../../src/trace/form.ts";
import { Journal } from "../../src/trace/journal.ts";

export interface Made {
  name: string;
  after: string;
  phase?: string;
  depth?: number;
}

export const random = (below: number): number => Math.floor(Math.random() * below);

/** The lines of a journal of one compile: each step is given what the one before it left. */
export function linesOf(written: string, made: readonly Made[], c = 0): Line[] {
  const lines: Line[] = [{ k: "compile", c, run: c + 1, kernel: `kernel_${c}`, script: "", specialization: "", target: "sm_80", device: "cpu", from_cache: false }];
  const id = (text: string): string => `id of ${text}`;
  const say = (data: string): void => void lines.push({ k: "text", id: id(data), data });
  say(written);
  let before = written;
  const seen = new Map<string, number>();
  made.forEach(({ name, after, phase = "tile", depth = 0 }, seq) => {
    const occurrence = (seen.get(name) ?? 0) + 1;
    seen.set(name, occurrence);
    const language = phase === "codegen" ? "cuda" : phase === "tile" ? "tile" : "hidet";
    const begin: Begin = { k: "pass_begin", c, seq, index: 100 * c + seq, phase, name, occurrence, parent: null, depth, before: id(before), language };
    lines.push(begin);
    say(after);
    lines.push({ k: "pass_end", c, seq, after: id(after), changed: after !== before, rebuilt: false, ns: 1e6, self_ns: 1e6, add: 1, del: 1 });
    before = after;
  });
  lines.push({ k: "compile_end", c, status: "done", ns: 1e7 });
  return lines;
}

export function journalOf(...compiles: Line[][]): Journal {
  const journal = new Journal();
  journal.add({ k: "run", schema: 1, version: "0", script: "work", argv: ["work.py"], cwd: "/home/me", pid: 1, rank: null, started: "" });
  for (const line of compiles.flat()) journal.add(line);
  journal.add({ k: "end" });
  return journal;
}

/** A pipeline of passes over some lines, most of which do something. */
export function pipeline(length: number): [written: string, made: Made[]] {
  const lines = Array.from({ length: 3 + random(12) }, () => `op_${random(6)}`);
  const written = lines.join("\n");
  const made = Array.from({ length }, (_, n): Made => {
    for (let edit = random(4); edit > 0; edit--) {
      const at = random(lines.length + 1);
      if (random(2)) lines.splice(at, random(3), `op_${random(6)}`);
      else lines.splice(at, 1);
    }
    return { name: `pass_${n % 5}`, after: lines.join("\n") };
  });
  return [written, made];
}

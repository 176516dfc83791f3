// SPDX-License-Identifier: Apache-2.0
// Which lines differ by names only. No DOM here.
//
// A line is known by what it computes: each name in it stands for the line that defined it, and so on down. So a line
// keeps its key when all names are shifted, and lines of one shape, as in unrolled code, are still told apart.
import { type Language, type Name, names } from "../common/syntax.ts";
import type { Lines, Pair } from "../common/textdiff.ts";

export interface NamedLine {
  /** The line with a hole for each name that may be renamed. */
  shape: string;
  names: string[];
}

export function namedLines(lines: Lines, language: Language): NamedLine[] {
  return lines.map((line) => {
    const holes = names(line, language).filter(({ isFixed }) => !isFixed);
    return { shape: withHoles(line, holes), names: holes.map(({ text }) => text) };
  });
}

function withHoles(line: string, holes: Name[]): string {
  let shape = "";
  let at = 0;
  for (const { start, stop } of holes) {
    shape += `${line.slice(at, start)}\0`;
    at = stop;
  }
  return shape + line.slice(at);
}

/** Keys of what the lines of both sides compute, equal where it is the same. */
export function valueKeys(...sides: NamedLine[][]): string[][] {
  const numbers = new Map<string, number>();
  return sides.map((lines) => {
    const values = new Map<string, string>();
    return lines.map(({ shape, names: used }) => {
      const fresh: string[] = [];
      const operands = used.map((name) => {
        const value = values.get(name);
        if (value !== undefined) return value;
        if (!fresh.includes(name)) fresh.push(name);
        return `new ${fresh.indexOf(name)}`;
      });
      const key = [shape, ...operands].join("\0");
      let number = numbers.get(key);
      if (number === undefined) numbers.set(key, (number = numbers.size));
      fresh.forEach((name, index) => values.set(name, `${number}.${index}`));
      return String(number);
    });
  });
}

/** What each name became: of all that the pairs suggest, the most frequent, one to one. */
export function renaming(pairs: readonly Pair[], before: NamedLine[], after: NamedLine[]): Map<string, string> {
  const votes = new Map<string, { from: string; to: string; count: number }>();
  for (const [i, j] of pairs) {
    const [old, now] = [before[i]!, after[j]!];
    if (old.shape !== now.shape) continue;
    old.names.forEach((from, index) => {
      const to = now.names[index]!;
      const vote = votes.get(`${from}\0${to}`);
      if (vote) vote.count++;
      else votes.set(`${from}\0${to}`, { from, to, count: 1 });
    });
  }
  const became = new Map<string, string>();
  const taken = new Set<string>();
  for (const { from, to } of [...votes.values()].sort((a, b) => b.count - a.count)) {
    if (became.has(from) || taken.has(to)) continue;
    became.set(from, to);
    taken.add(to);
  }
  return became;
}

export function isRenamed(old: NamedLine, now: NamedLine, became: ReadonlyMap<string, string>): boolean {
  return old.shape === now.shape && old.names.every((name, index) => became.get(name) === now.names[index]);
}

/** A line with what its names became. */
export function withNames({ shape, names: used }: NamedLine, became: ReadonlyMap<string, string>): string {
  let next = 0;
  return shape.replaceAll("\0", () => {
    const name = used[next++]!;
    return became.get(name) ?? name;
  });
}

// SPDX-License-Identifier: Apache-2.0
// Two texts line by line, as the switches say: what is the same, edited, re-indented, renamed, moved. No DOM here.
import type { Language } from "../common/syntax.ts";
import { align, between, type Hunk, Kind, type Lines, matches, type Pair, settled } from "../common/textdiff.ts";
import { isRenamed, type NamedLine, namedLines, renaming, valueKeys, withNames } from "./diffnames.ts";
import { inOrder, type Pins } from "./diffpins.ts";

/** What a line or a pair of lines shows: the first five are those of `Kind`, as a test says. */
export enum Show {
  Same = 0,
  Edited = 1,
  Removed = 2,
  Added = 3,
  Replaced = 4,
  /** The same but for blanks at its ends. */
  Indented = 5,
  /** The same but for names, which became others throughout. */
  Renamed = 6,
  /** Two lines of different languages, which are not compared. */
  Beside = 7,
  Fold = 8,
}

export interface Switches {
  /** Show lines of which only the indentation differs as such. */
  indents: boolean;
  /** Show lines of which only names differ as such. */
  renames: boolean;
}

/** A line from 0 on each side, or -1. */
export interface Item {
  show: Show;
  left: number;
  right: number;
}

/** Lines that went as they are to another place. */
export interface Move {
  left: number;
  right: number;
  count: number;
}

export interface Counts {
  added: number;
  removed: number;
  indented: number;
  renamed: number;
  moved: number;
}

export interface Alignment {
  items: Item[];
  moves: Move[];
  counts: Counts;
}

/** Fewer lines than this, or as few characters in all, may stand in two places by chance. */
const LEAST_MOVED_LINES = 3;
const LEAST_MOVED_INK = 30;
const MOST_PLACES = 64;

const trimmed = (line: string): string => line.replace(/^[ \t]+|[ \t\r]+$/g, "");

interface Side {
  lines: Lines;
  inked: Lines;
  named: NamedLine[];
  values: Lines;
}

export function alignment(before: Lines, after: Lines, languages: readonly [Language, Language], switches: Switches, pins: Pins = []): Alignment {
  const [left, right] = sides([before, after], languages, switches);
  const found = pinned(pins, before.length, after.length).flatMap(([old, now]) =>
    placed(compare(part(left, ...old), part(right, ...now), switches), old[0], now[0]),
  );
  const moves = movesIn(found, left, right);
  const became = switches.renames ? renaming(matched(found, before.length), left.named, right.named) : new Map<string, string>();
  const unmoved = (lines: Lines, side: "left" | "right"): string[] => {
    const kept = [...lines];
    for (const move of moves) kept.fill("", move[side], move[side] + move.count); // what is empty is paired with nothing
    return kept;
  };
  const renamed = switches.renames ? left.named.map((line) => withNames(line, became)) : before;
  const runs = align(unmoved(renamed, "left"), unmoved(after, "right"), found);
  const items: Item[] = runs.flatMap(({ kind, left: i, right: j, count }) =>
    Array.from({ length: count }, (_, k) => ({
      show: kind as number as Show,
      left: kind === Kind.Added ? -1 : i + k,
      right: kind === Kind.Removed ? -1 : j + k,
    })),
  );
  classify(items, left, right, switches, became);
  return { items, moves, counts: count(items, moves) };
}

function sides(texts: [Lines, Lines], languages: readonly [Language, Language], { indents, renames }: Switches): [Side, Side] {
  const inked = texts.map((lines) => (indents ? lines.map(trimmed) : lines));
  const named = inked.map((lines, n) => (renames ? namedLines(lines, languages[n]!) : []));
  const values = renames ? valueKeys(...named) : [[], []];
  const side = (n: 0 | 1): Side => ({ lines: texts[n], inked: inked[n]!, named: named[n]!, values: values[n]! });
  return [side(0), side(1)];
}

const part = ({ lines, inked, named, values }: Side, start: number, stop: number): Side => ({
  lines: lines.slice(start, stop),
  inked: inked.slice(start, stop),
  named: named.slice(start, stop),
  values: values.slice(start, stop),
});

/** What lies before, between and behind the pins. */
function pinned(pins: Pins, old: number, now: number): [Pair, Pair][] {
  let [left, right] = [0, 0];
  return [...inOrder(pins), { left: old, right: now }].map((pin) => {
    const stretch: [Pair, Pair] = [
      [left, pin.left],
      [right, pin.right],
    ];
    [left, right] = [pin.left + 1, pin.right + 1];
    return stretch;
  });
}

function placed(found: Hunk[], left: number, right: number): Hunk[] {
  return found.map(({ removed, added }) => ({
    removed: { start: left + removed.start, stop: left + removed.stop },
    added: { start: right + added.start, stop: right + added.stop },
  }));
}

// --- which lines are matched -----------------------------------------------------------------------------------------

type Keys = [left: Lines, right: Lines];

function compare(left: Side, right: Side, { indents, renames }: Switches): Hunk[] {
  const exact: Keys = [left.lines, right.lines];
  let pairs = matches(...exact);
  if (indents) {
    const inked: Keys = [left.inked, right.inked];
    pairs = refined(pairs, inked);
    // equal lines stay matched unless what surrounds them would then be torn apart
    if (pairs.length < inCommon(...inked)) pairs = longer(pairs, matches(...inked));
  }
  if (renames) {
    const shapes: Keys = [left.named.map(({ shape }) => shape), right.named.map(({ shape }) => shape)];
    pairs = longer(pairs, explained(refined(matches(left.values, right.values), shapes), left, right));
  }
  return settled(between(pairs, left.lines.length, right.lines.length), ...exact);
}

/** The pairs that hunks leave between them. */
function matched(found: Hunk[], count: number): Pair[] {
  const pairs: Pair[] = [];
  let [left, right] = [0, 0];
  for (const { removed, added } of [...found, { removed: { start: count, stop: count }, added: { start: 0, stop: 0 } }]) {
    for (let k = left; k < removed.start; k++) pairs.push([k, right + k - left]);
    [left, right] = [removed.stop, added.stop];
  }
  return pairs;
}

const longer = (first: Pair[], second: Pair[]): Pair[] => (second.length > first.length ? second : first);

/** How many lines both sides have, in whatever order. */
function inCommon(old: Lines, now: Lines): number {
  const left = new Map<string, number>();
  for (const line of old) left.set(line, (left.get(line) ?? 0) + 1);
  return now.reduce((count, line) => {
    const more = left.get(line) ?? 0;
    if (more) left.set(line, more - 1);
    return more ? count + 1 : count;
  }, 0);
}

/** The pairs, and what matches between them by other keys. */
function refined(pairs: Pair[], [old, now]: Keys): Pair[] {
  const more = between(pairs, old.length, now.length).flatMap(({ removed, added }) =>
    matches(old.slice(removed.start, removed.stop), now.slice(added.start, added.stop)).map(([i, j]): Pair => [removed.start + i, added.start + j]),
  );
  return [...pairs, ...more].sort(([i], [j]) => i - j);
}

/** Those of the pairs that are equal or differ by names that became others throughout. */
function explained(pairs: Pair[], left: Side, right: Side): Pair[] {
  const became = renaming(pairs, left.named, right.named);
  return pairs.filter(([i, j]) => left.inked[i] === right.inked[j] || isRenamed(left.named[i]!, right.named[j]!, became));
}

// --- what they show --------------------------------------------------------------------------------------------------

function classify(items: Item[], left: Side, right: Side, { indents, renames }: Switches, became: ReadonlyMap<string, string>): void {
  for (const item of items) {
    if (item.show !== Show.Same && item.show !== Show.Edited) continue;
    const { left: i, right: j } = item;
    if (left.lines[i] === right.lines[j]) item.show = Show.Same;
    else if (indents && left.inked[i] === right.inked[j]) item.show = Show.Indented;
    else if (renames && isRenamed(left.named[i]!, right.named[j]!, became)) item.show = Show.Renamed;
    else item.show = Show.Edited;
  }
}

function count(items: Item[], moves: Move[]): Counts {
  const of = (...shows: Show[]): number => items.filter(({ show }) => shows.includes(show)).length;
  const moved = moves.reduce((sum, move) => sum + move.count, 0);
  return {
    added: of(Show.Edited, Show.Added, Show.Replaced) - moved,
    removed: of(Show.Edited, Show.Removed, Show.Replaced) - moved,
    indented: of(Show.Indented),
    renamed: of(Show.Renamed),
    moved,
  };
}

// --- moved blocks ----------------------------------------------------------------------------------------------------

/** The longest blocks of removed lines that were added elsewhere, each line in one of them at most. */
function movesIn(found: Hunk[], left: Side, right: Side): Move[] {
  const places = new Map<string, number[]>();
  const isAdded = new Uint8Array(right.lines.length + 1);
  for (const { added } of found) {
    for (let j = added.start; j < added.stop; j++) {
      isAdded[j] = 1;
      const key = right.inked[j]!;
      const known = places.get(key);
      if (!known) places.set(key, [j]);
      else if (known.length < MOST_PLACES) known.push(j);
    }
  }
  const moves: Move[] = [];
  for (const { removed } of found) {
    let i = removed.start;
    while (i < removed.stop) {
      let best: Move = { left: i, right: -1, count: 0 };
      for (const j of places.get(left.inked[i]!) ?? []) {
        let length = 0;
        while (i + length < removed.stop && isAdded[j + length] && left.inked[i + length] === right.inked[j + length]) length++;
        if (length > best.count) best = { left: i, right: j, count: length };
      }
      if (isLarge(best, left.inked)) {
        moves.push(best);
        isAdded.fill(0, best.right, best.right + best.count);
      }
      i += isLarge(best, left.inked) ? best.count : 1;
    }
  }
  return moves;
}

function isLarge({ left, count: length }: Move, inked: Lines): boolean {
  if (length < LEAST_MOVED_LINES) return false;
  const ink = inked.slice(left, left + length).reduce((sum, line) => sum + line.length, 0);
  return ink >= LEAST_MOVED_INK;
}

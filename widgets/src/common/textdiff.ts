// SPDX-License-Identifier: Apache-2.0
// The one diff of tilekit, as `tilekit/textdiff.py` has it: that file explains it, this one must agree with it. Both are
// held to the vectors in `widgets/test/vectors/`.

const MAX_CELLS = 2 ** 32;
const KEPT_CELLS = 2 ** 26;
const PAIRED_CELLS = 2 ** 8;

const TOKEN = /[A-Za-z0-9_]+|[ \t]+|[^A-Za-z0-9_ \t]/gu;
const INK = /[A-Za-z0-9_]+|[^A-Za-z0-9_ \t]/gu;
const WORD = /[A-Za-z0-9_]+/g;

export enum Kind {
  Same = 0,
  Edited = 1,
  Removed = 2,
  Added = 3,
  Replaced = 4,
}

/** Half-open, counted from 0. */
export interface Range {
  start: number;
  stop: number;
}

export interface Hunk {
  removed: Range;
  added: Range;
}

export interface Run {
  kind: Kind;
  left: number;
  right: number;
  count: number;
}

export type Span = [start: number, stop: number];
export type Pair = [left: number, right: number];
export type Lines = readonly string[];

const size = (range: Range): number => range.stop - range.start;

export function hunks(before: Lines, after: Lines): Hunk[] {
  return settled(between(matches(before, after), before.length, after.length), before, after);
}

/** What lies between pairs of lines. */
export function between(matched: readonly Pair[], old: number, now: number): Hunk[] {
  const found: Hunk[] = [];
  let left = 0;
  let right = 0;
  for (const [i, j] of [...matched, [old, now] as Pair]) {
    if (i > left || j > right) found.push({ removed: { start: left, stop: i }, added: { start: right, stop: j } });
    left = i + 1;
    right = j + 1;
  }
  return found;
}

/** The rows of a side-by-side view, in order; the hunks may also be those of another comparison of these lines. */
export function align(before: Lines, after: Lines, found = hunks(before, after)): Run[] {
  const runs: Run[] = [];
  let left = 0;
  let right = 0;
  for (const hunk of found) {
    extend(runs, Kind.Same, left, right, hunk.removed.start - left);
    alignHunk(runs, hunk, before, after);
    left = hunk.removed.stop;
    right = hunk.added.stop;
  }
  extend(runs, Kind.Same, left, right, before.length - left);
  return runs;
}

export function spans(left: string, right: string): [Span[], Span[]] {
  const old = left.match(TOKEN) ?? [];
  const now = right.match(TOKEN) ?? [];
  const matched = matches(old, now);
  return [uncovered(old, new Set(matched.map(([i]) => i))), uncovered(now, new Set(matched.map(([, j]) => j)))];
}

// --- lines: the longest common subsequence ---------------------------------------------------------------------------

/** Pairs of equal items that form a longest common subsequence. */
export function matches(a: Lines, b: Lines): Pair[] {
  const shorter = Math.min(a.length, b.length);
  let head = 0;
  while (head < shorter && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < shorter - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const stopA = a.length - tail;
  const stopB = b.length - tail;
  const pairs: Pair[] = [];
  for (let k = 0; k < head; k++) pairs.push([k, k]);
  const placesA = common(a, head, stopA, new Set(b.slice(head, stopB)));
  const placesB = common(b, head, stopB, new Set(a.slice(head, stopA)));
  if (placesA.length && placesA.length * placesB.length <= MAX_CELLS) {
    const itemsA = placesA.map((i) => a[i]!);
    const itemsB = placesB.map((j) => b[j]!);
    for (const [i, j] of lcs(itemsA, itemsB)) pairs.push([placesA[i]!, placesB[j]!]);
  }
  for (let k = 0; k < tail; k++) pairs.push([stopA + k, stopB + k]);
  return pairs;
}

function common(items: Lines, start: number, stop: number, others: Set<string>): number[] {
  const places: number[] = [];
  for (let k = start; k < stop; k++) if (others.has(items[k]!)) places.push(k);
  return places;
}

function lcs(a: Lines, b: Lines): Pair[] {
  const occurrences = new Map<string, number[]>();
  a.forEach((item, i) => {
    const places = occurrences.get(item);
    if (places) places.push(i);
    else occurrences.set(item, [i]);
  });
  const words = (a.length + 31) >>> 5;
  const hits = new Uint32Array(words);

  // state and hits as one long number each: next = (state + (state & hits)) | (state & ~hits)
  const step = (state: Uint32Array, item: string, next: Uint32Array): void => {
    const places = occurrences.get(item)!;
    for (const i of places) hits[i >>> 5]! |= 1 << (i & 31);
    let carry = 0;
    for (let w = 0; w < words; w++) {
      const s = state[w]!;
      const h = hits[w]!;
      const sum = s + ((s & h) >>> 0) + carry;
      carry = sum > 0xffffffff ? 1 : 0;
      next[w] = sum | (s & ~h);
    }
    for (const i of places) hits[i >>> 5] = 0;
  };

  const block = a.length * b.length <= KEPT_CELLS ? b.length : Math.floor(Math.sqrt(b.length));
  const entries = [new Uint32Array(words).fill(0xffffffff)];
  for (let start = 0; start + block < b.length; start += block) {
    let state = entries[entries.length - 1]!;
    for (let j = start; j < start + block; j++) {
      const next = new Uint32Array(words);
      step(state, b[j]!, next);
      state = next;
    }
    entries.push(state);
  }

  const pairs: Pair[] = [];
  const isClear = (state: Uint32Array, i: number): boolean => !((state[i >>> 5]! >>> (i & 31)) & 1);
  let i = a.length - 1;
  let seeking = false; // whether b[j] that made bit i clear lies in an earlier block
  for (let n = entries.length - 1; n >= 0; n--) {
    const start = n * block;
    const stop = Math.min(start + block, b.length);
    const kept = new Uint32Array(words * (stop - start + 1));
    const stateAt = (k: number): Uint32Array => kept.subarray(k * words, (k + 1) * words);
    kept.set(entries[n]!);
    for (let j = start; j < stop; j++) step(stateAt(j - start), b[j]!, stateAt(j - start + 1));
    let j = stop - start - 1;
    while (i >= 0 && j >= 0) {
      if (!seeking && a[i] === b[start + j]) {
        pairs.push([i--, start + j--]);
        continue;
      }
      const state = stateAt(j + 1);
      while (i >= 0 && !isClear(state, i)) i--;
      if (i < 0) break;
      while (j >= 0 && isClear(stateAt(j), i)) j--;
      seeking = j < 0;
    }
  }
  return pairs.reverse();
}

export function settled(found: Hunk[], before: Lines, after: Lines): Hunk[] {
  const result: Hunk[] = [];
  found.forEach((hunk, n) => {
    const side = size(hunk.removed) ? "removed" : "added";
    if (size(hunk.removed) && size(hunk.added)) {
      result.push(hunk);
      return;
    }
    const lines = side === "removed" ? before : after;
    const last = result[result.length - 1];
    const following = found[n + 1];
    const lowest = last ? last[side].stop + 1 : 0;
    const highest = following ? following[side].start - 1 : lines.length;
    const shift = bestShift(lines, hunk[side], lowest, highest);
    result.push({ removed: moved(hunk.removed, shift), added: moved(hunk.added, shift) });
  });
  return result;
}

function bestShift(lines: Lines, own: Range, lowest: number, highest: number): number {
  let up = 0;
  let down = 0;
  while (own.start - up > lowest && lines[own.start - up - 1] === lines[own.stop - up - 1]) up++;
  while (own.stop + down < highest && lines[own.start + down] === lines[own.stop + down]) down++;
  let best = down;
  for (let shift = down - 1; shift >= -up; shift--) {
    if (indent(lines[own.start + shift]!) < indent(lines[own.start + best]!)) best = shift;
  }
  return best;
}

const moved = (lines: Range, shift: number): Range => ({ start: lines.start + shift, stop: lines.stop + shift });

function indent(line: string): number {
  const text = line.replace(/^[ \t]+/, "");
  return text ? line.length - text.length : 2 ** 20;
}

// --- pairs of lines --------------------------------------------------------------------------------------------------

function alignHunk(runs: Run[], hunk: Hunk, before: Lines, after: Lines): void {
  const old = before.slice(hunk.removed.start, hunk.removed.stop);
  const now = after.slice(hunk.added.start, hunk.added.stop);
  const left = hunk.removed.start;
  const right = hunk.added.start;
  let i = 0;
  let j = 0;
  for (const [pairI, pairJ] of [...pairs(old, now), [old.length, now.length] as Pair]) {
    const removed = pairI - i;
    const added = pairJ - j;
    const beside = Math.min(removed, added);
    extend(runs, Kind.Replaced, left + i, right + j, beside);
    extend(runs, Kind.Removed, left + i + beside, right + pairJ, removed - beside);
    extend(runs, Kind.Added, left + pairI, right + j + beside, added - beside);
    if (pairI < old.length) extend(runs, Kind.Edited, left + pairI, right + pairJ, 1);
    i = pairI + 1;
    j = pairJ + 1;
  }
}

function extend(runs: Run[], kind: Kind, left: number, right: number, count: number): void {
  if (count === 0) return;
  const last = runs[runs.length - 1];
  if (last?.kind === kind) last.count += count;
  else runs.push({ kind, left, right, count });
}

function pairs(old: Lines, now: Lines): Pair[] {
  if (!old.length || !now.length) return [];
  if (old.length * now.length <= PAIRED_CELLS) return pairsBySimilarity(old, now);
  const anchors = matches(shapes(old), shapes(now)).filter(([i, j]) => similarity(bag(old[i]!), bag(now[j]!)));
  const found: Pair[] = [];
  let [i, j]: Pair = [-1, -1];
  for (const [nextI, nextJ] of [...anchors, [old.length, now.length] as Pair]) {
    if (i >= 0) found.push([i, j]);
    const gapOld = old.slice(i + 1, nextI);
    const gapNow = now.slice(j + 1, nextJ);
    if (gapOld.length * gapNow.length <= PAIRED_CELLS) {
      for (const [di, dj] of pairsBySimilarity(gapOld, gapNow)) found.push([i + 1 + di, j + 1 + dj]);
    }
    [i, j] = [nextI, nextJ];
  }
  return found;
}

const shapes = (lines: Lines): string[] => lines.map((line) => line.replace(/^[ \t]+|[ \t]+$/g, "").replace(WORD, "w"));

function pairsBySimilarity(old: Lines, now: Lines): Pair[] {
  const bagsNow = now.map(bag);
  const similar = old.map(bag).map((a) => bagsNow.map((b) => similarity(a, b)));
  const best = Array.from({ length: old.length + 1 }, () => new Array<number>(now.length + 1).fill(0));
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      const alike = similar[i]![j]!;
      const paired = alike ? alike + best[i + 1]![j + 1]! : 0;
      best[i]![j] = Math.max(paired, best[i + 1]![j]!, best[i]![j + 1]!);
    }
  }
  const found: Pair[] = [];
  let i = 0;
  let j = 0;
  while (i < old.length && j < now.length) {
    const alike = similar[i]![j]!;
    if (alike && best[i]![j] === alike + best[i + 1]![j + 1]!) found.push([i++, j++]);
    else if (best[i]![j] === best[i + 1]![j]) i++;
    else j++;
  }
  return found;
}

interface Bag {
  tokens: Set<string>;
  size: number;
}

function bag(line: string): Bag {
  const tokens = new Set(line.match(INK) ?? []);
  return { tokens, size: total(tokens) };
}

/** In code points, as Python counts: a token beyond the basic plane is one character wide. */
function total(tokens: Iterable<string>): number {
  let sum = 0;
  for (const token of tokens) sum += isWord(token) ? token.length : 1;
  return sum;
}

const isWord = (token: string): boolean => /^[A-Za-z0-9_]/.test(token);

function similarity(a: Bag, b: Bag): number {
  const both = a.size + b.size;
  if (both === 0 || 4 * Math.min(a.size, b.size) < both) return 0;
  const shared = total([...a.tokens].filter((token) => b.tokens.has(token)));
  const share = Math.floor((2000 * shared) / both);
  return share >= 500 ? share : 0;
}

// --- tokens ----------------------------------------------------------------------------------------------------------

function uncovered(tokens: Lines, matched: Set<number>): Span[] {
  const starts = [0];
  for (const token of tokens) starts.push(starts[starts.length - 1]! + token.length);
  let found: [first: number, stop: number][] = [];
  tokens.forEach((token, index) => {
    if (matched.has(index) || isBlank(token)) return;
    const last = found[found.length - 1];
    if (last && tokens.slice(last[1], index).every(isBlank)) last[1] = index + 1;
    else found.push([index, index + 1]);
  });
  if (!found.length) found = tokens.flatMap((_, index): [number, number][] => (matched.has(index) ? [] : [[index, index + 1]]));
  return found.map(([first, stop]) => [starts[first]!, starts[stop]!]);
}

const isBlank = (token: string): boolean => token[0] === " " || token[0] === "\t";

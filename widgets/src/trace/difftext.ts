// SPDX-License-Identifier: Apache-2.0
// The rows that a view makes of two texts: side by side or in one column, with what is far from a change folded away.
// No DOM here.
import type { Language } from "../common/syntax.ts";
import { type Alignment, alignment, type Counts, type Item, type Move, Show, type Switches } from "./diffalign.ts";
import type { Pins } from "./diffpins.ts";

export type Side = "left" | "right";
export type Layout = "split" | "unified";

export interface Texts {
  before: readonly string[];
  after: readonly string[];
  languages: readonly [before: Language, after: Language];
  labels: readonly [before: string, after: string];
  /** Two languages, which stand beside each other and are not compared. */
  isTranslation: boolean;
  /** Of a translation: for each new line the old one that it was made of, which it then stands beside if it can. */
  origins?: Origins | undefined;
}
export type Origins = readonly (number | null)[];

export interface Settings extends Switches {
  layout: Layout;
  /** How many lines stay around a change. */
  context: number;
}

export interface Row {
  show: Show;
  /** The line on each side, from 0, or -1; of a fold, the first it hides. */
  left: number;
  right: number;
  /** In one column an edited pair takes two rows: whose text this one shows. */
  shows: Side | "both";
  /** How many lines a fold hides, and how many of them differ by renaming only. */
  hidden: number;
  renamed: number;
}

/** Where a place in the texts is: a line of one side. */
export interface Place {
  side: Side;
  line: number;
}

export const CONTEXTS = [0, 3, 10, Infinity] as const;
const STEP = 20;
const SMALLEST_FOLD = 3;

/** Neighboring items of which all but what was opened at either end is hidden. */
interface Stretch {
  start: number;
  stop: number;
  top: number;
  bottom: number;
}

export class DiffText {
  rows: Row[] = [];
  readonly counts: Counts;
  readonly moves: readonly Move[];
  readonly #items: Item[];
  #stretches: Stretch[] = [];
  #widest: number | undefined;
  #settings: Settings;

  constructor(
    readonly texts: Texts,
    settings: Settings,
    readonly pins: Pins = [],
  ) {
    const { before, after, languages, isTranslation, origins = [] } = texts;
    const { items, moves, counts } = isTranslation ? beside(before.length, after.length, origins) : alignment(before, after, languages, settings, pins);
    this.#items = items;
    this.moves = moves;
    this.counts = counts;
    this.#settings = settings;
    this.#stretch();
  }

  /** Lay the same comparison out in another way. */
  arrange(layout: Layout, context: number): void {
    const isRefolded = context !== this.#settings.context;
    this.#settings = { ...this.#settings, layout, context };
    if (isRefolded) this.#stretch();
    else this.#lay();
  }

  // --- folds -----------------------------------------------------------------------------------------------------------

  /** Show 20 of the lines that a fold hides, at its top or its bottom, or all of them. */
  open(fold: Row, end: "top" | "bottom" | "all"): void {
    const stretch = this.#stretchOf(fold);
    if (!stretch) return;
    stretch[end === "bottom" ? "bottom" : "top"] += end === "all" ? fold.hidden : STEP;
    this.#lay();
  }

  /** Open the fold at a row or the next one below it; close it where it is open already. */
  toggle(index: number): void {
    const row = this.rows[index];
    const isAt = ({ left, right }: Item): boolean => row !== undefined && left >= row.left && right >= row.right;
    const stretch = this.#stretches.find(({ stop }) => isAt(this.#items[stop - 1]!)) ?? this.#stretches.at(-1);
    if (!stretch) return;
    const isOpen = stretch.stop - stretch.start - stretch.top - stretch.bottom < SMALLEST_FOLD;
    stretch.top = isOpen ? 0 : stretch.stop - stretch.start;
    stretch.bottom = 0;
    this.#lay();
  }

  /** Show everything, or fold again everything that is far from a change. */
  expand(everything: boolean): void {
    for (const stretch of this.#stretches) {
      stretch.top = everything ? stretch.stop - stretch.start : 0;
      stretch.bottom = 0;
    }
    this.#lay();
  }

  get canFold(): boolean {
    return this.#stretches.length > 0;
  }

  get isExpanded(): boolean {
    return this.canFold && !this.rows.some(({ show }) => show === Show.Fold);
  }

  /** The row of a line; the fold that hides it is opened. */
  reveal({ side, line }: Place): number {
    const fold = this.rows.find((row) => row.show === Show.Fold && this.#hides(row, side, line));
    if (fold) this.open(fold, "all");
    return this.rowOf({ side, line });
  }

  /** The row that shows a line, or -1. */
  rowOf({ side, line }: Place): number {
    return this.rows.findIndex((row) => row.show !== Show.Fold && row[side] === line && (row.shows === side || row.shows === "both"));
  }

  #hides(fold: Row, side: Side, line: number): boolean {
    const stretch = this.#stretchOf(fold)!;
    return this.#items.slice(stretch.start, stretch.stop).some((item) => item[side] === line);
  }

  #stretchOf({ left, right }: Row): Stretch | undefined {
    return this.#stretches.find(({ start, stop }) => {
      const [first, last] = [this.#items[start]!, this.#items[stop - 1]!];
      return left >= 0 && right >= 0 && first.left <= left && left <= last.left && first.right <= right && right <= last.right;
    });
  }

  // --- what is where ---------------------------------------------------------------------------------------------------

  line({ side, line }: Place): string {
    return (side === "left" ? this.texts.before : this.texts.after)[line]!;
  }

  languageOf(side: Side): Language {
    return this.texts.languages[side === "left" ? 0 : 1];
  }

  /** How many columns the longest line takes. */
  get widest(): number {
    return (this.#widest ??= [this.texts.before, this.texts.after].flat().reduce((most, line) => Math.max(most, columns(line)), 0));
  }

  /** Rows where a change begins. */
  changes(): number[] {
    return this.rows.flatMap((row, index) => (isChange(row) && !isChange(this.rows[index - 1]) ? [index] : []));
  }

  /** The moved block that a line belongs to. */
  moveAt({ side, line }: Place): Move | undefined {
    return this.moves.find((move) => move[side] <= line && line < move[side] + move.count);
  }

  /** Lines in which something stands, whatever its case: of the new text, and of the old one those that are gone. */
  find(needle: string): Place[] {
    const found = (lines: readonly string[], side: Side): Place[] =>
      lines.flatMap((line, index) => (line.toLowerCase().includes(needle.toLowerCase()) ? [{ side, line: index }] : []));
    if (!needle) return [];
    const { before, after } = this.texts;
    const shown = new Set(after);
    return [...found(after, "right"), ...found(before, "left").filter(({ line }) => !shown.has(before[line]!))];
  }

  // --- rows ------------------------------------------------------------------------------------------------------------

  #stretch(): void {
    const { context } = this.#settings;
    const items = this.#items;
    const isQuiet = ({ show }: Item): boolean => show === Show.Same || show === Show.Renamed;
    this.#stretches = [];
    const isWhole = context === Infinity || items.every(({ show }) => show === Show.Same || show === Show.Beside);
    for (let start = 0; start < items.length && !isWhole; ) {
      let stop = start;
      while (stop < items.length && isQuiet(items[stop]!)) stop++;
      const from = start === 0 ? 0 : start + context;
      const to = stop === items.length ? stop : stop - context;
      if (to - from >= SMALLEST_FOLD) this.#stretches.push({ start: from, stop: to, top: 0, bottom: 0 });
      start = stop + 1;
    }
    this.#lay();
  }

  #lay(): void {
    const rows: Row[] = [];
    let at = 0;
    for (const { start, stop, top, bottom } of this.#stretches) {
      if (stop - start - top - bottom < SMALLEST_FOLD) continue;
      const hidden = this.#items.slice(start + top, stop - bottom);
      this.#add(rows, at, start + top);
      const { left, right } = hidden[0]!;
      const renamed = hidden.filter(({ show }) => show === Show.Renamed).length;
      rows.push({ show: Show.Fold, left, right, shows: "both", hidden: hidden.length, renamed });
      at = stop - bottom;
    }
    this.#add(rows, at, this.#items.length);
    this.rows = rows;
  }

  #add(rows: Row[], start: number, stop: number): void {
    const items = this.#items.slice(start, stop);
    const row = ({ show, left, right }: Item, shows: Row["shows"]): Row => ({ show, left, right, shows, hidden: 0, renamed: 0 });
    if (this.#settings.layout === "split" || this.texts.isTranslation) {
      for (const item of items) rows.push(row(item, "both"));
      return;
    }
    for (let at = 0; at < items.length; ) {
      let end = at;
      while (end < items.length && isTwofold(items[end]!)) end++;
      const changed = items.slice(at, end);
      for (const item of changed) if (item.left >= 0) rows.push(row(item, "left"));
      for (const item of changed) if (item.right >= 0) rows.push(row(item, "right"));
      if (end < items.length) rows.push(row(items[end]!, "both"));
      at = end + 1;
    }
  }
}

const isTwofold = ({ show }: Item): boolean => show >= Show.Edited && show <= Show.Replaced;
const isChange = (row: Row | undefined): boolean => row !== undefined && row.show >= Show.Edited && row.show <= Show.Indented;

/** A tab may take eight. */
const columns = (line: string): number => line.length + (line.includes("\t") ? 7 * (line.split("\t").length - 1) : 0);

function beside(before: number, after: number, origins: Origins): Alignment {
  const items: Item[] = [];
  let [left, right] = [0, 0];
  const upTo = (i: number, j: number): void => {
    for (; left < i || right < j; left++, right++) items.push({ show: Show.Beside, left: left < i ? left : -1, right: right < j ? right : -1 });
    [left, right] = [i, j];
  };
  for (const [i, j] of inStep(origins)) upTo(i, j);
  upTo(before, after);
  return { items, moves: [], counts: { added: 0, removed: 0, indented: 0, renamed: 0, moved: 0 } };
}

/** As many old lines with the first line made of each as can stand side by side in order. */
function inStep(origins: Origins): [left: number, right: number][] {
  interface Link {
    left: number;
    right: number;
    previous: Link | undefined;
  }
  const seen = new Set<number>();
  const ends: Link[] = []; // of the chains of each length, that which ends highest up
  origins.forEach((left, right) => {
    if (left === null || seen.has(left)) return;
    seen.add(left);
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (ends[middle]!.left < left) low = middle + 1;
      else high = middle;
    }
    ends[low] = { left, right, previous: ends[low - 1] };
  });
  const links: [number, number][] = [];
  for (let link = ends.at(-1); link; link = link.previous) links.push([link.left, link.right]);
  return links.reverse();
}

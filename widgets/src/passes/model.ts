// SPDX-License-Identifier: Apache-2.0
// What the kernel tells about passes, and the rows that a side-by-side view makes of it. No DOM here.
import { Kind } from "../common/textdiff.ts";

/** `changed`, `same`: a pass; `translated`: one language became another; `failed`: what it died of is in `error`. */
export type Status = "changed" | "same" | "translated" | "failed";

export interface Pass {
  name: string;
  /** What its result is written in: "Tile IR", "Hidet IR", "CUDA C". */
  language: string;
  status: Status;
  added: number;
  removed: number;
  ms: number;
  error: string;
}

/** The text of one pass as it comes over the wire: old lines are sent only where they differ. */
export interface PassMessage {
  kind: "pass";
  index: number;
  runs: [kind: Kind, left: number, right: number, count: number][];
  old: string[];
  after: string;
}

/** What a row shows: one of the kinds of the diff, a fold, or two texts that are not compared. */
export const FOLD = 5;
export const BESIDE = 6;

export interface Row {
  kind: Kind | typeof FOLD | typeof BESIDE;
  /** The line on each side, from 0, or -1. */
  left: number;
  right: number;
  /** How many lines a fold hides. */
  hidden: number;
}

const CONTEXT = 3;
const SMALLEST_FOLD = 3;

const lines = (text: string): string[] => (text ? text.split("\n") : []);

/** Both texts of a pass, and its rows with some of them folded away. */
export class PassText {
  readonly before: string[] = [];
  readonly after: string[];
  rows: Row[] = [];
  isExpanded = false;
  readonly #runs: PassMessage["runs"];
  readonly #isCompared: boolean;
  readonly #opened = new Set<number>();

  constructor(message: PassMessage, status: Status) {
    this.after = lines(message.after);
    this.#runs = message.runs;
    this.#isCompared = status !== "translated";
    let taken = 0;
    for (const [kind, left, right, count] of message.runs) {
      for (let k = 0; k < count; k++) {
        if (kind === Kind.Same) this.before[left + k] = this.after[right + k]!;
        else if (kind !== Kind.Added) this.before[left + k] = message.old[taken++]!;
      }
    }
    this.#fold();
  }

  /** Show what a fold hides. */
  open(fold: Row): void {
    this.#opened.add(fold.left);
    this.#fold();
  }

  /** Show everything, or fold again everything that is far from a change. */
  expand(everything: boolean): void {
    this.isExpanded = everything;
    this.#opened.clear();
    this.#fold();
  }

  get canFold(): boolean {
    return this.isExpanded || this.#opened.size > 0 || this.rows.some((row) => row.kind === FOLD);
  }

  /** The row of a line; the fold that hides it is opened. */
  reveal(side: "left" | "right", line: number): number {
    const isAt = (row: Row): boolean => row[side] === line && row.kind !== FOLD;
    const isOver = (row: Row): boolean => row.kind === FOLD && row[side] <= line && line < row[side] + row.hidden;
    const fold = this.rows.find(isOver);
    if (fold) this.open(fold);
    return this.rows.findIndex(isAt);
  }

  /** Rows where a change begins. */
  changes(): number[] {
    const isChange = (row: Row | undefined): boolean => row !== undefined && row.kind >= Kind.Edited && row.kind <= Kind.Replaced;
    return this.rows.flatMap((row, index) => (isChange(row) && !isChange(this.rows[index - 1]) ? [index] : []));
  }

  #fold(): void {
    const rows: Row[] = [];
    const add = (kind: Row["kind"], left: number, right: number, count: number): void => {
      for (let k = 0; k < count; k++) {
        rows.push({
          kind,
          left: kind === Kind.Added || left + k >= this.before.length ? -1 : left + k,
          right: kind === Kind.Removed || right + k >= this.after.length ? -1 : right + k,
          hidden: 0,
        });
      }
    };
    const hasChanges = this.#runs.some(([kind]) => kind !== Kind.Same);
    this.#runs.forEach(([kind, left, right, count], index) => {
      if (!this.#isCompared) return;
      const head = index === 0 ? 0 : CONTEXT;
      const hidden = count - head - (index === this.#runs.length - 1 ? 0 : CONTEXT);
      const isFolded = kind === Kind.Same && hasChanges && hidden >= SMALLEST_FOLD && !this.isExpanded && !this.#opened.has(left + head);
      if (!isFolded) return add(kind, left, right, count);
      add(kind, left, right, head);
      rows.push({ kind: FOLD, left: left + head, right: right + head, hidden });
      add(kind, left + head + hidden, right + head + hidden, count - head - hidden);
    });
    if (!this.#isCompared) add(BESIDE, 0, 0, Math.max(this.before.length, this.after.length));
    this.rows = rows;
  }
}

/** The next pass in a direction, of those that changed something or of all; the one given where there is none. */
export function step(passes: readonly Pass[], from: number, direction: 1 | -1, changedOnly: boolean): number {
  for (let index = from + direction; index >= 0 && index < passes.length; index += direction) {
    const { status } = passes[index]!;
    if (!changedOnly || status === "changed" || status === "failed") return index;
  }
  return from;
}

/** Five blocks for a change: how many are filled says how large it is, their colors of what it consists. */
export function blocks(added: number, removed: number): ("added" | "removed" | "empty")[] {
  const all = added + removed;
  if (!all) return [];
  const filled = Math.min(5, Math.ceil(Math.log2(all + 1)));
  const green = added && removed ? Math.min(filled - 1, Math.max(1, Math.round((filled * added) / all))) : added ? filled : 0;
  const red = filled === 1 ? 1 - green : filled - green;
  return [...Array(green).fill("added"), ...Array(red).fill("removed"), ...Array(5 - filled).fill("empty")];
}

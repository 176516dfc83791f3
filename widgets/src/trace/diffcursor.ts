// SPDX-License-Identifier: Apache-2.0
// The line of the texts that one is at: it goes by lines, from name to name in its line, and to the other side.
import { names } from "../common/syntax.ts";
import { Show } from "./diffalign.ts";
import type { Aligner } from "./diffaligner.ts";
import type { Pane } from "./diffpane.ts";
import type { DiffText, Place, Row, Side } from "./difftext.ts";
import type { Uses } from "./diffuses.ts";
import { activate } from "./live.ts";

/** Where the cursor is. */
interface Ground {
  pane: Pane;
  aligner: Aligner;
  uses: Uses;
  text(): DiffText;
  /** Change the rows, and keep in view what is. */
  staying(change: () => void): void;
  /** A line was reached. */
  onLine(side: Side, line: number): void;
}

export class Cursor {
  place: Place | undefined;

  constructor(private readonly on: Ground) {}

  /** The row under it, else the first that is in view. */
  get row(): number {
    const row = this.#own;
    return row >= 0 ? row : this.on.pane.first;
  }

  get #own(): number {
    return this.place ? this.on.text().rowOf(this.place) : -1;
  }

  set(place: Place | undefined): void {
    this.place = place;
    this.paint();
    if (place) this.on.onLine(place.side, place.line);
  }

  /** Show it in the rows that are in the page. */
  paint(): void {
    const row = this.#own;
    for (const [index, node] of this.on.pane.live) {
      if (index === row) node.dataset.cursor = this.place!.side;
      else delete node.dataset.cursor;
    }
    activate(this.on.pane.viewport, this.on.pane.live.get(row));
  }

  /** To the next line; a fold on the way opens at the end that is reached. */
  step(direction: 1 | -1): void {
    const { aligner, pane } = this.on;
    const text = this.on.text();
    const wanted = aligner.isOn ? aligner.side : (this.place?.side ?? "right");
    const isPassed = (row: Row | undefined): boolean => row !== undefined && aligner.isOn && row.show !== Show.Fold && row[wanted] < 0;
    let index = this.row + (this.place ? direction : 0);
    while (isPassed(text.rows[index])) index += direction;
    const fold = text.rows[index];
    if (fold?.show === Show.Fold) {
      const count = text.rows.length;
      this.on.staying(() => text.open(fold, direction === 1 ? "top" : "bottom"));
      if (direction === -1) index += text.rows.length - count;
    }
    const row = text.rows[index];
    if (!row) return;
    const side = row.shows !== "both" ? row.shows : row[wanted] >= 0 ? wanted : otherThan(wanted);
    this.set({ side, line: row[side] });
    pane.show(index);
  }

  /** To the next or the previous name in its line, then to the other side; some columns aside where it is nowhere. */
  sidestep(direction: 1 | -1): void {
    const { pane, uses } = this.on;
    if (!this.place) return pane.slide(8 * direction);
    const text = this.on.text();
    const found = names(text.line(this.place), text.languageOf(this.place.side)).map((name) => name.text);
    const different = [...new Set(found)];
    const name = different[different.indexOf(uses.chosen) + direction];
    if (name) {
      uses.chosen = name;
      return;
    }
    const side = direction === 1 ? "right" : "left";
    const row = text.rows[this.row]!;
    if (side === this.place.side || row[side] < 0 || row.shows !== "both") return;
    uses.chosen = "";
    this.set({ side, line: row[side] });
  }

  /** Where the moved block that it is in came from or went. */
  get counterpart(): Place | undefined {
    const move = this.place && this.on.text().moveAt(this.place);
    if (!move) return undefined;
    const { side, line } = this.place!;
    return { side: otherThan(side), line: move[otherThan(side)] + line - move[side] };
  }
}

const otherThan = (side: Side): Side => (side === "left" ? "right" : "left");

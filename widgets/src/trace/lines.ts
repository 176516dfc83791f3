// SPDX-License-Identifier: Apache-2.0
// Which line comes from which in one compile, from the lines of the person to machine code. No DOM here.
//
// The texts of a compile are a tree: each was made from one other, and a map says for each of its lines which line of that
// one it comes from. Two lines belong together if the way between them leads through lines that do.
import type { Language } from "../common/syntax.ts";
import type { Cell, LineMap } from "./form.ts";
import { type Compile, type Journal, LANGUAGES } from "./journal.ts";

/** A text of the compile that one looks at beside others. */
export interface Layer {
  id: string;
  label: string;
  /** What colors it; that of the person is Python, as the tile IR is. */
  language: Language;
  lines: readonly string[];
  /** The number of each line where it is not the place in the text; null: it has none. */
  numbers: readonly (number | null)[] | undefined;
}

/** The notes of a step that hold maps: into what it made, and into what a person made of that. */
const KEYS = ["lines", "lines_of_edit"] as const;

export class Lines {
  /** By the text that each of them leads back from. */
  readonly #maps = new Map<string, LineMap>();
  readonly #made = new Map<LineMap, ReadonlyMap<number, readonly number[]>>();
  /** The person's lines, and the last text of each language, in the order in which they are made. */
  readonly layers: readonly Layer[];

  constructor(journal: Journal, compile: Compile) {
    const known = new Set<string>();
    const last = new Map<Language, string>();
    let cell: Cell | undefined;
    for (const { notes, language, taken, begin, end, codegen } of compile.steps) {
      for (const key of KEYS) {
        const map = notes.get(key);
        // a pass may make a text again that was there before
        if (!map || known.has(map.to)) continue;
        known.add(map.from).add(map.to);
        this.#maps.set(map.to, map);
      }
      cell ??= notes.get("cell");
      if (begin.before !== null) last.set(taken, begin.before);
      const after = codegen?.compiled ?? end?.after;
      if (after) last.set(language, after);
    }
    const written = cell && { id: cell.text, label: cell.names.map(shortName).join(", "), language: "tile" as const, lines: journal.lines(cell.text), numbers: cell.numbers };
    const made = [...last].filter(([, id]) => known.has(id)).map(([language, id]) => ({ id, label: LANGUAGES[language], language, lines: journal.lines(id), numbers: undefined }));
    this.layers = written ? [written, ...made] : made;
  }

  /** Whether anything is known of lines. */
  get isEmpty(): boolean {
    return this.#maps.size === 0;
  }

  /** The lines of a text, in their order, that belong with lines of another one. */
  related(from: string, lines: Iterable<number>, to: string): number[] {
    const up = this.#way(from);
    const down = this.#way(to);
    const top = [from, ...up.map((map) => map.from)].find((id) => id === to || down.some((map) => map.from === id));
    if (top === undefined) return [];
    let found = new Set(lines);
    for (const { to: id, map } of up) {
      if (id === top) break;
      found = new Set([...found].flatMap((line) => map[line] ?? []));
    }
    const steps = down.slice(0, to === top ? 0 : down.findIndex(({ from: id }) => id === top) + 1);
    for (const map of steps.reverse()) {
      const made = this.#madeBy(map);
      found = new Set([...found].flatMap((line) => made.get(line) ?? []));
    }
    return [...found].sort((a, b) => a - b);
  }

  /** The maps from a text back to the first one. */
  #way(id: string): LineMap[] {
    const way: LineMap[] = [];
    for (let map = this.#maps.get(id); map; map = this.#maps.get(map.from)) way.push(map);
    return way;
  }

  /** The lines that each line became. */
  #madeBy(map: LineMap): ReadonlyMap<number, readonly number[]> {
    let made = this.#made.get(map);
    if (!made) {
      const all = new Map<number, number[]>();
      map.map.forEach((from, to) => {
        if (from === null) return;
        const lines = all.get(from);
        if (lines) lines.push(to);
        else all.set(from, [to]);
      });
      this.#made.set(map, (made = all));
    }
    return made;
  }
}

/** A file as it is called for short. */
const shortName = (name: string): string => name.split("/").at(-1)!;

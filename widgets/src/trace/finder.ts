// SPDX-License-Identifier: Apache-2.0
// The search: in the texts that are shown, and in what every pass of the kernel made.
import { button, el, plural, searchBox } from "../common/dom.ts";
import { focus } from "../common/keyboard.ts";
import type { DiffView } from "./diff.ts";
import type { Compile, Journal, Step } from "./journal.ts";
import { find, type Found } from "./queries.ts";

const NOWHERE: ReadonlySet<Step> = new Set();

export class Finder {
  readonly box = searchBox("Find");
  /** Which of how many places in the shown texts this is. */
  readonly hits = el("span", "tk-dim tk-hits");
  /** The first and the last pass that has it. */
  readonly strip = el("div", "tk-strip", [], { role: "status" });
  #found: Found | undefined;
  #isHere = false;

  constructor(
    private readonly journal: Journal,
    private readonly diff: DiffView,
    private readonly go: (step: Step) => void,
    private readonly onSearch: () => void,
    signal: AbortSignal,
  ) {
    this.box.addEventListener("input", onSearch, { signal });
    this.box.addEventListener("keydown", (event) => this.#key(event), { signal });
  }

  get needle(): string {
    return this.box.value;
  }

  set needle(text: string) {
    this.box.value = text;
  }

  /** The steps whose result has it. */
  get holders(): ReadonlySet<Step> {
    return this.#found?.holders ?? NOWHERE;
  }

  /** Look through all passes of a compile, unless that was done; whether there is something new to say. */
  look(compile: Compile): boolean {
    const isKnown = this.#found ? this.#found.compile === compile && this.#found.needle === this.needle : !this.needle;
    if (isKnown) return false;
    this.#found = this.needle ? find(this.journal, compile, this.needle) : undefined;
    this.strip.replaceChildren(...(this.#found ? this.#words(this.#found) : []));
    return true;
  }

  /** Go to the first place in the texts that are shown, to the next, or to the previous one. */
  here(direction: -1 | 0 | 1): void {
    const { at, of } = this.diff.find(this.needle, direction);
    this.#isHere = of > 0;
    this.hits.textContent = !this.needle ? "" : of ? `${at} of ${of}` : "not here";
  }

  clear(): void {
    this.needle = "";
    this.onSearch();
  }

  #words({ first, last, isOriginal, holders, gone }: Found): (Node | string)[] {
    const link = (step: Step): HTMLElement => button(`${step.number} ${step.name}`, `Go to ${step.number} ${step.name}`, () => this.go(step));
    if (!first || !last) return gone ? ["only in the program as it was written, gone after", link(gone)] : ["in no pass"];
    const all = `of ${plural(holders.size, "result")}`;
    const words = [isOriginal ? "there as written, first in" : "first in", link(first), "last in", link(last)];
    return gone ? [...words, `${all} · gone after`, link(gone)] : [...words, all];
  }

  #key(event: KeyboardEvent): void {
    if (event.key === "Enter") {
      const { first } = this.#found ?? {};
      if (!this.#isHere && first) this.go(first);
      else this.here(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      this.clear();
      focus(this.diff.viewport);
    } else return;
    event.preventDefault();
  }
}

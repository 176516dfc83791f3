// SPDX-License-Identifier: Apache-2.0
// What stands above the rows: what each side is, what lies between them in numbers, and what is said or asked of a person.
import { balance, el, plural } from "../common/dom.ts";
import type { Counts } from "./diffalign.ts";

export class DiffHead {
  readonly #heads = [el("span"), el("span")] as const;
  readonly #summary = el("span", "tk-diff-summary");
  readonly #message = el("div", "tk-diff-message", [], { role: "status" });
  readonly elements = [el("div", "tk-heads", [this.#heads[0], el("div", "tk-head", [this.#heads[1], this.#summary])]), this.#message] as const;

  constructor() {
    this.say("");
  }

  /** Name the sides, and say what each is to the other where that is not in its name. */
  name(labels: readonly [string, string], sides: readonly [string, string] | undefined): void {
    this.#heads.forEach((head, n) => head.replaceChildren(labels[n]!, ...(sides ? [el("em", "", [sides[n]!])] : [])));
  }

  /** Say what is neither added nor removed; where there is nothing of the kind, numbers stand elsewhere. */
  count({ added, removed, moved, indented, renamed }: Counts, pins: number): void {
    const words = [
      ...(moved ? [`${plural(moved, "line")} moved`] : []),
      ...(indented ? [`${plural(indented, "line")} re-indented`] : []),
      ...(renamed ? [differByNames(renamed)] : []),
      ...(pins ? [plural(pins, "pin")] : []),
    ];
    this.#summary.replaceChildren(...(words.length ? [...balance(added, removed), el("span", "tk-dim", [words.join(" · ")])] : []));
  }

  say(message: string, isRefusal = false): void {
    this.#message.textContent = message;
    this.#message.hidden = !message;
    this.#message.classList.toggle("tk-refused", isRefusal);
  }

  get isSpeaking(): boolean {
    return !this.#message.hidden;
  }
}

export const differByNames = (count: number): string => `${plural(count, "line")} ${count === 1 ? "differs" : "differ"} by renaming only`;

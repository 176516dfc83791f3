// SPDX-License-Identifier: Apache-2.0
// The line above the texts: which step this is, what it changed, and what can be done with it.
import { balance, button, el, group, setPressed, toggleButton } from "../common/dom.ts";
import type { State } from "./state.ts";
import type { Subject } from "./subject.ts";

interface Choices {
  /** To the next or the previous step that did something. */
  walk(direction: 1 | -1): void;
  blame(): void;
  columns(): void;
  mark(): void;
  copy(side: "before" | "after"): void;
}

export class StepHead {
  readonly element: HTMLElement;
  readonly #name = el("span", "tk-current", ["nothing was traced yet"]);
  readonly #balance = el("span", "tk-balance");
  readonly #words = el("span", "tk-dim tk-what");
  readonly #blame: HTMLButtonElement;
  readonly #columns: HTMLButtonElement;
  readonly #mark: HTMLButtonElement;

  constructor(
    choices: Choices,
    /** What says how the texts are drawn. */
    switches: HTMLElement,
  ) {
    this.#blame = toggleButton("Blame", "Which pass made each line (b)", () => choices.blame());
    this.#columns = toggleButton("Lines", "The lines of every language beside each other (m)", () => choices.columns());
    this.#mark = toggleButton("Mark", "", () => choices.mark());
    const stepper = [
      button("‹", "Previous changed pass (k)", () => choices.walk(-1), ""),
      this.#name,
      button("›", "Next changed pass (j)", () => choices.walk(1), ""),
    ];
    const copies = [
      el("span", "tk-copy", ["Copy"], { "aria-hidden": "true" }),
      button("before", "Copy the text before (Y)", () => choices.copy("before"), ""),
      button("after", "Copy the text after (y)", () => choices.copy("after"), ""),
    ];
    const tools = el("span", "tk-tools", [switches, group("What else is said", [this.#blame, this.#columns, this.#mark]), group("Copy", copies)]);
    this.element = el("div", "tk-main-head", [group("Passes", stepper, "tk-stepper"), this.#balance, this.#words, tools]);
  }

  show({ step, words, added, removed }: Subject): void {
    this.#name.replaceChildren(el("b", "", [step.number]), ` ${step.name}`);
    this.#name.title = step.name;
    this.#words.title = this.#words.textContent = words;
    this.#balance.replaceChildren(...(added || removed ? balance(added, removed) : []));
  }

  /** Say which of the toggles are on, and hide those that have nothing to say. */
  press({ step, marked, against, comparison, isBlamed }: State, columns: { isKnown: boolean; isOpen: boolean }): void {
    const words = !marked ? "Mark" : marked === step ? "Marked" : against ? "Compared" : `Compare with ${marked.number}`;
    this.#mark.textContent = words;
    this.#mark.title = this.#mark.ariaLabel = marked ? `${words}: ${marked.number} ${marked.name} (x)` : "Mark this pass, to compare another with it (x)";
    this.#blame.hidden = this.#mark.hidden = comparison !== undefined;
    this.#columns.hidden = !columns.isKnown;
    const pressed: [HTMLElement, boolean][] = [[this.#mark, marked !== undefined], [this.#blame, isBlamed], [this.#columns, columns.isOpen]];
    for (const [toggle, isOn] of pressed) setPressed(toggle, isOn);
  }
}

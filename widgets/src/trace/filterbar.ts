// SPDX-License-Identifier: Apache-2.0
// The tabs of the phases and the badges of what became of steps, which say what is listed.
import { button, el, setPressed } from "../common/dom.ts";
import { focus } from "../common/keyboard.ts";
import { BADGES, badgeOf, type Filter, phases } from "./filters.ts";
import type { Step } from "./journal.ts";

export class FilterBar {
  readonly tabs = el("div", "tk-tabs", [], { role: "tablist", "aria-label": "Phases" });
  readonly badges = el("div", "tk-badges", [], { role: "group", "aria-label": "What became of a step" });

  constructor(private readonly narrow: (filter: Partial<Filter>) => void) {
    this.tabs.addEventListener("keydown", (event) => {
      const { previousElementSibling, nextElementSibling } = document.activeElement!;
      const tab = { ArrowLeft: previousElementSibling, ArrowRight: nextElementSibling }[event.key];
      if (tab instanceof HTMLElement) tab.focus();
    });
  }

  /** Show the phases of some steps, the kinds of those in the chosen phase, and what is chosen. */
  show(steps: readonly Step[], { phase, badge }: Filter): void {
    const tabs = [...phases(steps)].map(([name, count]) => this.#tab(name, count, name === phase));
    replace(this.tabs, [this.#tab(undefined, steps.length, phase === undefined), ...tabs]);
    const shown = steps.filter((step) => phase === undefined || step.phase === phase);
    const all = this.#badge(undefined, "", shown.length, shown.length === 1 ? "step" : "steps", "All steps", false);
    const badges = BADGES.map(({ name, sign, word, what }) => {
      const count = shown.filter((step) => badgeOf(step) === name).length;
      const node = this.#badge(badge === name ? undefined : name, sign, count, word, what, badge === name);
      node.classList.add(`tk-is-${name}`);
      node.hidden = count === 0 && badge !== name && name !== "changed";
      return node;
    });
    replace(this.badges, [all, ...badges]);
  }

  #tab(phase: string | undefined, count: number, isSelected: boolean): HTMLElement {
    const node = button(phase ?? "All", phase === undefined ? "All phases" : `Phase ${phase}`, () => this.narrow({ phase }), "tk-tab");
    node.setAttribute("role", "tab");
    node.tabIndex = isSelected ? 0 : -1;
    node.setAttribute("aria-selected", String(isSelected));
    node.append(el("span", "tk-tab-count", [String(count)]));
    return node;
  }

  #badge(badge: Filter["badge"], sign: string, count: number, word: string, what: string, isPressed: boolean): HTMLElement {
    const node = button("", `${count} ${word}: ${what}`, () => this.narrow({ badge }), "tk-badge");
    if (sign) node.append(el("i", "tk-sign-of", [sign], { "aria-hidden": "true" }));
    node.append(el("b", "", [String(count)]), el("span", "tk-badge-word", [` ${word}`]));
    setPressed(node, isPressed);
    return node;
  }
}

/** Put other buttons in the place of those in a bar; the one that has the focus hands it on, and the bar does not scroll. */
function replace(bar: HTMLElement, buttons: HTMLElement[]): void {
  const { scrollLeft } = bar;
  const at = [...bar.children].findIndex((node) => node === document.activeElement);
  bar.replaceChildren(...buttons);
  bar.scrollLeft = scrollLeft;
  focus(buttons[at]);
}

// SPDX-License-Identifier: Apache-2.0
// The list of passes at the side: what each changed, by how much, and how long it took.
import { el, milliseconds, searchBox } from "../common/dom.ts";
import { makeFocusable } from "../common/keyboard.ts";
import { blocks, type Pass } from "./model.ts";

export class Rail {
  readonly element: HTMLElement;
  readonly #filter = searchBox("Filter passes");
  readonly #list = el("ul", "tk-rail-list", [], { role: "listbox", "aria-label": "Passes" });
  #items: HTMLElement[] = [];
  #headings: [heading: HTMLElement, first: number][] = [];
  #passes: readonly Pass[] = [];
  #changedOnly = false;

  constructor(
    private readonly id: string,
    onSelect: (index: number) => void,
  ) {
    makeFocusable(this.#list);
    this.#filter.addEventListener("input", () => this.#hide());
    this.#list.addEventListener("click", (event) => {
      const item = (event.target as HTMLElement).closest<HTMLElement>("[data-index]");
      if (item) onSelect(Number(item.dataset.index));
    });
    this.element = el("aside", "tk-rail", [el("div", "tk-rail-filter", [this.#filter]), this.#list]);
  }

  show(passes: readonly Pass[]): void {
    this.#passes = passes;
    this.#items = passes.map((pass, index) => this.#item(pass, index));
    this.#headings = [];
    const children: HTMLElement[] = [];
    this.#items.forEach((item, index) => {
      const { language } = passes[index]!;
      if (language !== passes[index - 1]?.language) {
        const heading = el("li", "tk-rail-heading", [language], { role: "presentation" });
        this.#headings.push([heading, index]);
        children.push(heading);
      }
      children.push(item);
    });
    this.#list.replaceChildren(...children);
    this.#hide();
  }

  select(index: number): void {
    this.#items.forEach((item, at) => item.setAttribute("aria-selected", String(at === index)));
    const item = this.#items[index];
    if (!item) return;
    this.#list.setAttribute("aria-activedescendant", item.id);
    // only the list scrolls, never the notebook
    const { offsetTop, offsetHeight } = item;
    const { scrollTop, clientHeight } = this.#list;
    if (offsetTop < scrollTop) this.#list.scrollTop = offsetTop - offsetHeight;
    else if (offsetTop + offsetHeight > scrollTop + clientHeight) this.#list.scrollTop = offsetTop + 2 * offsetHeight - clientHeight;
  }

  set changedOnly(value: boolean) {
    this.#changedOnly = value;
    this.#hide();
  }

  #hide(): void {
    const wanted = this.#filter.value.trim().toLowerCase();
    this.#items.forEach((item, index) => {
      const pass = this.#passes[index]!;
      item.hidden = (this.#changedOnly && pass.status === "same") || !pass.name.toLowerCase().includes(wanted);
    });
    this.#headings.forEach(([heading, first], n) => {
      const next = this.#headings[n + 1]?.[1] ?? this.#items.length;
      heading.hidden = this.#items.slice(first, next).every((item) => item.hidden);
    });
  }

  #item(pass: Pass, index: number): HTMLElement {
    const item = el("li", `tk-pass tk-${pass.status}`, [], { role: "option", id: `${this.id}-pass-${index}`, "data-index": String(index) });
    const number = el("span", "tk-pass-number", [String(index + 1).padStart(2, "0")], { "aria-hidden": "true" });
    item.append(number, el("span", "tk-pass-name", [pass.name]), this.#what(pass), el("span", "tk-pass-time", [milliseconds(pass.ms)]));
    item.title = `${pass.name}, ${milliseconds(pass.ms)}`;
    return item;
  }

  #what(pass: Pass): HTMLElement {
    if (pass.status === "changed") {
      const bars = blocks(pass.added, pass.removed).map((what) => el("i", `tk-${what}`));
      return el("span", "tk-pass-change", [
        el("span", "tk-plus", [`+${pass.added}`]),
        el("span", "tk-minus", [`−${pass.removed}`]),
        el("span", "tk-bars", bars, { "aria-hidden": "true" }),
      ]);
    }
    const words = { same: "no change", translated: "translates", failed: "failed" };
    return el("span", "tk-pass-word", [words[pass.status]]);
  }
}

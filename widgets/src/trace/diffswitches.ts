// SPDX-License-Identifier: Apache-2.0
// The buttons that say how a diff is drawn, and the same as a text for the address of a page.
import { el, group, setPressed, toggleButton } from "../common/dom.ts";
import { makeFocusable } from "../common/keyboard.ts";
import { CONTEXTS, type Layout, type Settings } from "./difftext.ts";

const FIRST: Settings = { layout: "split", context: 3, indents: true, renames: false };

export class Switches {
  settings: Readonly<Settings> = FIRST;
  /** How many columns there are until somebody chooses. */
  #layout: Layout = FIRST.layout;
  readonly #unified = toggleButton("Unified", "One column (u)", () => this.toggle("unified"));
  readonly #indents = toggleButton("Indents", "Show lines of which only the indentation differs as such (w)", () => this.toggle("indents"));
  readonly #renames = toggleButton("Renames", "Fold lines that differ by renaming only (r)", () => this.toggle("renames"));
  readonly #align = toggleButton("Align", "Say which lines belong together (F7 or a; Shift+F7 takes one back)", () => this.onAlign());
  readonly #context = el("select", "tk-select", [], { "aria-label": "Lines around a change", title: "Lines around a change" });
  readonly #parts = [this.#unified, this.#indents, this.#renames, this.#align, this.#context];
  readonly element = group("How the texts are drawn", this.#parts);

  constructor(
    private readonly onChange: (changes: Partial<Settings>) => void,
    private readonly onAlign: () => void,
  ) {
    makeFocusable(this.#context);
    this.#context.append(...CONTEXTS.map((lines) => el("option", "", [lines === Infinity ? "all lines" : `${lines} around`], { value: String(lines) })));
    this.#context.addEventListener("change", () => this.onChange({ context: Number(this.#context.value) }));
  }

  toggle(which: "unified" | "indents" | "renames"): void {
    const { layout } = this.settings;
    this.onChange(which === "unified" ? { layout: layout === "split" ? "unified" : "split" } : { [which]: !this.settings[which] });
  }

  show(isAligning: boolean, isTranslation: boolean): void {
    const { layout, context, indents, renames } = this.settings;
    const pressed: [HTMLElement, boolean][] = [[this.#unified, layout === "unified"], [this.#indents, indents], [this.#renames, renames], [this.#align, isAligning]];
    for (const [toggle, isOn] of pressed) setPressed(toggle, isOn);
    this.#context.value = String(context);
    for (const part of this.#parts) part.disabled = isTranslation;
  }

  /** What is not as it is at first. */
  get words(): string[] {
    const { layout, context, indents, renames } = this.settings;
    return [
      ...(layout === this.#layout ? [] : [layout[0]!]),
      ...(context === FIRST.context ? [] : [contextWord(context)]),
      ...(indents ? [] : ["w"]),
      ...(renames ? ["r"] : []),
    ];
  }

  /** What such words say; what they do not is as it is at first, which is one column where there is no room for two. */
  read(words: ReadonlySet<string>, isNarrow: boolean): Settings {
    this.#layout = isNarrow ? "unified" : FIRST.layout;
    const layout = words.has("u") ? "unified" : words.has("s") ? "split" : this.#layout;
    const context = CONTEXTS.find((lines) => words.has(contextWord(lines))) ?? FIRST.context;
    return { layout, context, indents: !words.has("w"), renames: words.has("r") };
  }
}

const contextWord = (lines: number): string => `c${lines === Infinity ? "all" : lines}`;

// SPDX-License-Identifier: Apache-2.0
// The help: what every key does, and which run this is.
import { button, el } from "../common/dom.ts";
import { focus } from "../common/keyboard.ts";
import { command } from "./cards.ts";
import type { Run } from "./journal.ts";
import type { Binding } from "./keys.ts";

export class Help {
  #dialog: HTMLElement | undefined;
  /** What had the focus before it opened. */
  #home: Element | null = null;

  constructor(
    private readonly root: HTMLElement,
    /** The keys by what they are for. */
    private readonly groups: Readonly<Record<string, readonly Binding[]>>,
    private readonly runs: readonly Run[],
  ) {}

  get isOpen(): boolean {
    return this.#dialog !== undefined;
  }

  toggle(): void {
    if (this.#dialog) {
      this.#dialog.remove();
      this.#dialog = undefined;
      focus(this.#home);
      return;
    }
    this.#home = document.activeElement;
    const close = button("Close", "Close the help (Esc)", () => this.toggle());
    const lists = Object.entries(this.groups).map(([name, bindings]) => el("section", "", [el("b", "", [name]), keyList(bindings)]));
    const facts = this.runs.filter(({ line }) => line.script).map(runFacts);
    const head = el("div", "tk-help-head", [el("b", "", ["Keys"]), el("span", "tk-grow"), close]);
    this.#dialog = el("div", "tk-help", [head, el("div", "tk-help-keys", lists), ...facts], { role: "dialog", "aria-label": "Help" });
    this.root.append(this.#dialog);
    close.focus();
  }
}

function keyList(bindings: readonly Binding[]): HTMLElement {
  const list = el("dl");
  for (const [keys, what] of bindings) {
    list.append(el("dt", "", keys.split(" ").map((name) => el("kbd", "", [name]))), el("dd", "", [what]));
  }
  return list;
}

function runFacts(run: Run): HTMLElement {
  const { script, started, version, pid, rank } = run.line;
  const facts = [started.replace("T", " ").replace(/\.\d+Z$/, " UTC"), `tilekit ${version}`, `process ${pid}`, rank === null ? "" : `rank ${rank}`];
  return el("div", "tk-help-run", [el("b", "", [script]), ` ${facts.filter(Boolean).join(" · ")}`, el("pre", "", [command(run)])]);
}

// SPDX-License-Identifier: Apache-2.0
// The first line of the viewer: which script and kernel this is, and with which other one it is compared.
import { el } from "../common/dom.ts";
import { makeFocusable } from "../common/keyboard.ts";
import type { Compile, Journal } from "./journal.ts";
import { summary } from "./rows.ts";

interface HeaderEvents {
  /** Only this kernel is to be listed; undefined: all of them. */
  onKernel: (compile: Compile | undefined) => void;
  /** The shown kernel is to stand beside this one; undefined: alone. */
  onOther: (compile: Compile | undefined) => void;
}

export class Header {
  readonly element: HTMLElement;
  readonly #kernels: HTMLSelectElement;
  readonly #others: HTMLSelectElement;
  readonly #facts = el("span", "tk-dim tk-facts");

  constructor({ compiles, runs }: Journal, { onKernel, onOther }: HeaderEvents, tools: HTMLElement[], signal: AbortSignal) {
    this.#kernels = choice("Kernel", `All ${compiles.length} kernels`, compiles, onKernel, signal);
    this.#others = choice("Compare with another kernel", "Compare with", compiles, onOther, signal);
    const hasMany = compiles.length > 1;
    const script = runs.find(({ line }) => line.script)?.line.script;
    const name = compiles[0]?.name ?? "";
    this.element = el("header", "", [
      el("span", "tk-title", [script ?? "Passes"]),
      hasMany ? this.#kernels : el("span", "tk-kernel", [name === script ? "" : name], { title: name }),
      this.#facts,
      ...(hasMany ? [this.#others] : []),
      el("span", "tk-grow"),
      ...tools,
    ]);
  }

  /** Say of which compile a step is shown, which one is listed alone, and which one stands beside it. */
  show(compile: Compile, listed: number | undefined, other: Compile | undefined): void {
    const { specialization, target, device } = compile.line;
    this.#facts.title = this.#facts.textContent = [specialization, target, device, summary(compile)].filter(Boolean).join(" · ");
    this.#kernels.value = listed === undefined ? "" : String(listed);
    this.#others.value = other ? String(other.number) : "";
  }
}

function choice(name: string, none: string, compiles: readonly Compile[], onChoice: (compile: Compile | undefined) => void, signal: AbortSignal): HTMLSelectElement {
  const node = el("select", "tk-select", [el("option", "", [none], { value: "" })], { "aria-label": name, title: name });
  for (const { name: kernel, number, line } of compiles) {
    const words = [kernel, line.target, line.run > 1 ? `run ${line.run}` : ""].filter(Boolean).join(" · ");
    node.append(el("option", "", [words], { value: String(number) }));
  }
  makeFocusable(node);
  node.addEventListener("change", () => onChoice(node.value === "" ? undefined : compiles[Number(node.value)]), { signal });
  return node;
}

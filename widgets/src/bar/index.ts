// SPDX-License-Identifier: Apache-2.0
// The bar below a cell: it opens the panels of the kernels that the cell made, each in its place below it.
import type { AnyModel, Host, RenderProps } from "@anywidget/types";
import { button, el } from "../common/dom.ts";
import { GONE, hasKernel, KernelLine, onChange } from "../common/kernel.ts";
import { keepFocus, keepKeys, makeFocusable } from "../common/keyboard.ts";
import { foldStatic } from "../common/static.ts";

type Kind = "passes" | "source";

interface Entry {
  name: string;
  patched: boolean;
  /** What was found wrong with it, in a few words; empty if nothing was. */
  report: string;
}

interface State {
  kernels: Entry[];
  kernel: number;
  shown: "" | Kind;
  /** The widgets that were made so far: of `passes:0` the reference by which the front end finds it. */
  panels: Record<string, string>;
}

const LABELS: Record<Kind, string> = { passes: "Passes", source: "Source" };
let bars = 0;

class Bar {
  readonly root: HTMLElement;
  readonly #row: HTMLElement;
  readonly #line: KernelLine;
  readonly #buttons: Record<Kind, HTMLButtonElement>;
  readonly #select = el("select", "tk-select", [], { "aria-label": "Kernel" });
  readonly #patched = el("span", "tk-pill tk-warned", ["PATCHED"]);
  readonly #report: HTMLButtonElement;
  readonly #gone = el("div", "tk-gone", [GONE], { role: "alert" });
  readonly #waiting = el("div", "tk-waiting", ["opening…"], { role: "status" });
  readonly #place: HTMLElement;
  readonly #shown = new Map<string, HTMLElement>();

  constructor(
    private readonly model: AnyModel<State>,
    private readonly host: Host,
    private readonly signal: AbortSignal,
  ) {
    this.#gone.hidden = this.#waiting.hidden = true;
    this.#place = el("div", "tk-place", [this.#waiting], { id: `tk-bar-${++bars}` });
    this.#buttons = { passes: this.#button("passes"), source: this.#button("source") };
    this.#report = button("", "Show it in the source", () => this.#choose({ shown: "source" }), "tk-pill tk-removed tk-report");
    makeFocusable(this.#select);
    this.#select.addEventListener("change", () => this.#choose({ kernel: this.#select.selectedIndex }));
    const buttons = el("span", "tk-bar-buttons", Object.values(this.#buttons));
    this.#row = el("div", "tk-bar-row", [buttons, this.#select, this.#patched, this.#report], {
      role: "toolbar",
      "aria-label": "Panels of this cell's kernels",
    });
    this.root = el("div", "tk-bar", [this.#row, this.#gone, this.#place]);
    this.#line = new KernelLine(model, () => this.#lose(), signal);
    keepKeys(this.#row, (key) => this.#key(key), signal);
    keepFocus(this.#row, () => this.#buttons[this.model.get("shown") || "passes"], signal);
    onChange(model, ["kernels"], () => this.#list(), signal);
    onChange(model, ["kernel", "shown", "panels"], () => this.#show(), signal);
    this.#list();
  }

  #button(kind: Kind): HTMLButtonElement {
    const element = button(LABELS[kind], `${LABELS[kind]} of the kernel`, () => this.#toggle(kind), "tk-bar-button");
    element.setAttribute("aria-controls", this.#place.id);
    return element;
  }

  #toggle(kind: Kind): void {
    this.#choose({ shown: this.model.get("shown") === kind ? "" : kind });
  }

  #choose(values: Partial<Pick<State, "shown" | "kernel">>): void {
    this.#line.save(values);
    this.#show();
  }

  #key(key: string): boolean {
    if (key !== "Escape" || !this.model.get("shown")) return false;
    this.#choose({ shown: "" });
    return true;
  }

  #list(): void {
    const kernels = this.model.get("kernels");
    const options = kernels.map(({ name, patched, report }) =>
      el("option", "", [[name, patched && "PATCHED", report].filter(Boolean).join(" · ")]),
    );
    this.#select.replaceChildren(...options);
    this.#select.hidden = kernels.length < 2;
    this.#show();
  }

  #show(): void {
    const kernels = this.model.get("kernels");
    const kernel = this.model.get("kernel");
    const shown = this.model.get("shown");
    this.#select.selectedIndex = kernel;
    // among several, the list of them says it
    this.#patched.hidden = kernels.length > 1 || !kernels[kernel]?.patched;
    const report = kernels[kernel]?.report ?? "";
    this.#report.hidden = !report || (this.#line.isGone && !this.#shown.has(`source:${kernel}`));
    this.#report.textContent = report;
    this.#report.setAttribute("aria-label", `${report}: show it in the source`);
    for (const [kind, element] of Object.entries(this.#buttons)) {
      element.setAttribute("aria-expanded", String(kind === shown));
      element.disabled = this.#line.isGone && !this.#shown.has(`${kind}:${kernel}`);
    }
    this.#row.hidden = this.#line.isGone && this.#shown.size === 0;
    this.#showPanel(shown ? `${shown}:${kernel}` : "");
  }

  /** Panels that were opened once stay in the page, hidden: what was scrolled, typed and folded in them stays too. */
  #showPanel(key: string): void {
    for (const [other, element] of this.#shown) element.hidden = other !== key;
    const reference = this.model.get("panels")[key];
    this.#waiting.hidden = !key || this.#shown.has(key) || this.#line.isGone;
    this.root.dataset.open = this.#shown.get(key)?.dataset.ready ? key : "";
    if (!reference || this.#shown.has(key)) return;
    const element = el("div", "tk-panel-place");
    this.#shown.set(key, element);
    this.#place.append(element);
    void this.#render(reference, element).then(() => this.#show());
  }

  async #render(reference: string, element: HTMLElement): Promise<void> {
    try {
      const panel = await this.host.getWidget(reference);
      await panel.render({ el: element, signal: this.signal });
    } catch (error) {
      if (!this.#line.isGone) element.append(el("div", "tk-gone", [`this panel did not open: ${String(error)}`], { role: "alert" }));
    }
    element.dataset.ready = "true";
  }

  #lose(): void {
    this.#gone.hidden = false;
    this.#show();
  }
}

function render({ model, el: element, host, signal }: RenderProps<State>): void {
  element.hidden = !hasKernel(model);
  if (element.hidden) return;
  element.append(new Bar(model, host, signal).root);
  foldStatic(element, model, signal);
}

export default { render };

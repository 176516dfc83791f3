// SPDX-License-Identifier: Apache-2.0
// The panel of passes: the viewer of journals in a notebook. The kernel hands over the journal when a panel asks for it.
import type { AnyModel, RenderProps } from "@anywidget/types";
import { el } from "../common/dom.ts";
import { GONE, hasKernel, KernelLine } from "../common/kernel.ts";
import { foldStatic } from "../common/static.ts";
import { Journal } from "../trace/journal.ts";
import { inflated } from "../trace/packed.ts";
import { Viewer } from "../trace/viewer.ts";

interface State {
  /** What is shown, as the fragment of a page's address says it. */
  view: string;
}

class PassPanel {
  readonly root = el("div", "tk-passes");
  readonly #gone = el("div", "tk-gone", [GONE], { role: "alert" });
  readonly #line: KernelLine;
  #viewer: Viewer | undefined;

  constructor(
    private readonly model: AnyModel<State>,
    private readonly signal: AbortSignal,
  ) {
    this.#gone.hidden = true;
    this.root.append(this.#gone);
    this.#line = new KernelLine(model, () => (this.#gone.hidden = false), signal);
    const onMessage = (_message: unknown, [packed]: DataView[]): void => void this.#open(packed!);
    const onView = (): void => this.#follow();
    model.on("msg:custom", onMessage);
    model.on("change:view", onView);
    signal.addEventListener("abort", () => {
      model.off("msg:custom", onMessage);
      model.off("change:view", onView);
    });
    this.#line.send({ kind: "journal" });
  }

  async #open(packed: DataView): Promise<void> {
    if (this.#viewer) return;
    const bytes = new Uint8Array(packed.byteLength);
    bytes.set(new Uint8Array(packed.buffer, packed.byteOffset, packed.byteLength));
    const journal = new Journal().read(await inflated(bytes));
    const host = { keysOf: this.root, tools: [], onPlace: (view: string) => this.#line.save({ view }) };
    this.#viewer = new Viewer(journal, host, this.signal);
    this.root.append(this.#viewer.root);
    this.#viewer.show(this.model.get("view"));
  }

  #follow(): void {
    const view = this.model.get("view");
    if (this.#viewer && view !== this.#viewer.place) this.#viewer.show(view);
  }
}

function render({ model, el: element, signal }: RenderProps<State>): void {
  element.hidden = !hasKernel(model);
  if (element.hidden) return;
  element.append(new PassPanel(model, signal).root);
  foldStatic(element, model, signal);
}

export default { render };

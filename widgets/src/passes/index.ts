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

interface Message {
  kind: "journal";
  /** Whether machine code is not in it, and can be. */
  goes_on?: boolean;
}

class PassPanel {
  readonly root = el("div", "tk-passes");
  readonly #gone = el("div", "tk-gone", [GONE], { role: "alert" });
  readonly #line: KernelLine;
  #viewer: Viewer | undefined;
  /** That of the viewer. */
  #life = new AbortController();

  constructor(
    private readonly model: AnyModel<State>,
    signal: AbortSignal,
  ) {
    this.#gone.hidden = true;
    this.root.append(this.#gone);
    this.#line = new KernelLine(model, () => (this.#gone.hidden = false), signal);
    const onMessage = (message: Message, [packed]: DataView[]): void => void this.#open(packed!, message.goes_on);
    const onView = (): void => this.#follow();
    model.on("msg:custom", onMessage);
    model.on("change:view", onView);
    signal.addEventListener("abort", () => {
      model.off("msg:custom", onMessage);
      model.off("change:view", onView);
      this.#life.abort();
    });
    this.#line.send({ kind: "journal" });
  }

  /** Show a journal in place of the one before; `goesOn` says that machine code can be asked for. */
  async #open(packed: DataView, goesOn = false): Promise<void> {
    const bytes = new Uint8Array(packed.byteLength);
    bytes.set(new Uint8Array(packed.buffer, packed.byteOffset, packed.byteLength));
    const journal = new Journal().read(await inflated(bytes));
    const askOn = goesOn ? () => this.#line.send({ kind: "machine code" }) : undefined;
    const host = { keysOf: this.root, tools: [], onPlace: (view: string) => this.#line.save({ view }), askOn };
    const before = this.#viewer;
    this.#life.abort();
    this.#life = new AbortController();
    this.#viewer = new Viewer(journal, host, this.#life.signal);
    if (before) before.root.replaceWith(this.#viewer.root);
    else this.root.append(this.#viewer.root);
    this.#viewer.show(before?.place ?? this.model.get("view"));
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

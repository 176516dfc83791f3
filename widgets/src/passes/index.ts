// SPDX-License-Identifier: Apache-2.0
// The panel of passes: the viewer of journals in a notebook, and an editor of the tile IR after a pass. The kernel hands
// over the journal when a panel asks for it, and again when what is compiled is another.
import type { AnyModel, RenderProps } from "@anywidget/types";
import { button, el } from "../common/dom.ts";
import { GONE, hasKernel, KernelLine, onChange } from "../common/kernel.ts";
import { focus, keepKeys } from "../common/keyboard.ts";
import { foldStatic } from "../common/static.ts";
import { Journal, type Step } from "../trace/journal.ts";
import { read } from "../trace/link.ts";
import { inflated } from "../trace/packed.ts";
import { Viewer } from "../trace/viewer.ts";
import { StepEditor, type Told } from "./edit.ts";

interface State extends Told {
  /** What is shown, as the fragment of a page's address says it. */
  view: string;
  /** The steps, by their numbers, of which the text may be edited. */
  editable: number[];
}

interface Message {
  kind: "journal";
  /** Whether machine code is not in it, and can be. */
  goes_on?: boolean;
}

/** How the name of a step begins that is a person's edit of what the pass before it made. */
const EDIT = "edit_of_";

class PassPanel {
  readonly root = el("div", "tk-passes");
  readonly #gone = el("div", "tk-gone", [GONE], { role: "alert" });
  readonly #line: KernelLine;
  readonly #edit = button("Edit", "Edit the tile IR after this pass, and compile on from it", () => this.#openEditor());
  readonly #editor: StepEditor;
  #journal: Journal | undefined;
  #viewer: Viewer | undefined;
  #shown = new AbortController();
  #step: Step | undefined;
  #edited: number | undefined;

  constructor(
    private readonly model: AnyModel<State>,
    signal: AbortSignal,
  ) {
    this.#gone.hidden = true;
    const requests = {
      compile: (text: string) => this.#send({ kind: "edit", seq: this.#edited, text }),
      revert: () => this.#send({ kind: "revert" }),
      stop: () => this.#line.send({ kind: "stop" }),
      close: () => this.#closeEditor(),
    };
    this.#editor = new StepEditor(requests, signal);
    keepKeys(this.#editor.root, () => false, signal);
    this.root.append(this.#gone);
    this.#line = new KernelLine(model, () => this.#lose(), signal);
    const onMessage = (message: Message, [packed]: DataView[]): void => void this.#open(packed!, message.goes_on);
    model.on("msg:custom", onMessage);
    onChange(model, ["view"], () => this.#follow(), signal);
    onChange(model, ["editable", "status", "comparison", "verdict", "busy", "markers"], () => this.#tell(), signal);
    signal.addEventListener("abort", () => {
      this.#shown.abort();
      model.off("msg:custom", onMessage);
    });
    this.#tell();
    this.#line.send({ kind: "journal" });
  }

  /** Show a journal in place of the one before; `goesOn` says that machine code can be asked for. */
  async #open(packed: DataView, goesOn = false): Promise<void> {
    const bytes = new Uint8Array(packed.byteLength);
    bytes.set(new Uint8Array(packed.buffer, packed.byteOffset, packed.byteLength));
    this.#journal = new Journal().read(await inflated(bytes));
    this.#shown.abort();
    this.#shown = new AbortController();
    const askOn = goesOn ? () => this.#line.send({ kind: "machine code" }) : undefined;
    const host = { keysOf: this.root, tools: [this.#edit], onPlace: (view: string) => this.#onPlace(view), askOn };
    const viewer = new Viewer(this.#journal, host, this.#shown.signal);
    this.#viewer?.root.remove();
    this.#viewer = viewer;
    this.root.append(viewer.root);
    viewer.show(this.model.get("view"));
  }

  #follow(): void {
    const view = this.model.get("view");
    if (this.#viewer && view !== this.#viewer.place) this.#viewer.show(view);
  }

  #onPlace(view: string): void {
    this.#line.save({ view });
    const { p } = read(view);
    this.#step = this.#journal?.compiles[0]?.steps.find((step) => step.begin.index === p);
    this.#tell();
  }

  // --- the editor ------------------------------------------------------------------------------------------------------

  #openEditor(): void {
    const step = this.#step;
    if (!step || !this.#journal) return;
    // of what was edited before, the pass that it was edited after
    const { name } = step.begin;
    const passes = step.compile.steps.slice(0, step.compile.steps.indexOf(step));
    const pass = name.startsWith(EDIT) ? passes.findLast((one) => one.begin.name === name.slice(EDIT.length)) : step;
    this.#edited = (pass ?? step).begin.seq;
    this.#gone.after(this.#editor.root);
    this.#editor.open(`${step.number} ${step.name}`, this.#journal.lines(step.after).join("\n"));
    this.#tell();
  }

  #closeEditor(): void {
    this.#editor.root.remove();
    focus(this.#edit);
  }

  #send(message: unknown): void {
    if (this.model.get("busy") === "") this.#line.send(message);
  }

  #lose(): void {
    this.#gone.hidden = false;
    this.#tell();
  }

  #tell(): void {
    const editable = this.model.get("editable");
    this.#edit.hidden = editable.length === 0;
    this.#edit.disabled = this.#line.isGone || !this.#step || !editable.includes(this.#step.begin.seq);
    const get = <K extends keyof Told>(name: K): Told[K] => this.model.get(name);
    const told = { status: get("status"), comparison: get("comparison"), verdict: get("verdict"), busy: get("busy"), markers: get("markers") };
    this.#editor.show(told, this.#line.isGone);
  }
}

function render({ model, el: element, signal }: RenderProps<State>): void {
  element.hidden = !hasKernel(model);
  if (element.hidden) return;
  element.append(new PassPanel(model, signal).root);
  foldStatic(element, model, signal);
}

export default { render };

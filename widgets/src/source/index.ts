// SPDX-License-Identifier: Apache-2.0
// The panel of the source: the generated CUDA C in an editor that recompiles it in place.
import type { AnyModel, RenderProps } from "@anywidget/types";
import { button, el, plural } from "../common/dom.ts";
import { GONE, KernelLine, onChange } from "../common/kernel.ts";
import { keepFocus, keepKeys, makeFocusable } from "../common/keyboard.ts";
import { Editor } from "./editor.ts";
import type { Marker } from "./markers.ts";

interface State {
  kernel: string;
  text: string;
  generated: string;
  markers: Marker[];
  status: string;
  comparison: string;
  verdict: "" | "same" | "differs" | "failed";
  mergeable: boolean;
  busy: "" | "compiling" | "comparing";
}

const SAVE_AFTER_MS = 400;
const SIGNS = { error: "●", warning: "▲", info: "■" };

class SourcePanel {
  readonly root: HTMLElement;
  readonly #editor: Editor;
  readonly #line: KernelLine;
  readonly #edited = el("span", "tk-pill tk-warned", ["edited"]);
  readonly #gone = el("div", "tk-gone", [GONE], { role: "alert" });
  readonly #problems = el("ul", "tk-problems", [], { "aria-label": "Problems" });
  readonly #status = el("span", "tk-status", [], { role: "status" });
  readonly #comparison = el("span", "tk-comparison", [], { role: "status" });
  readonly #recompile: HTMLButtonElement;
  readonly #revert: HTMLButtonElement;
  readonly #merge: HTMLButtonElement;
  readonly #stop: HTMLButtonElement;
  #isSent = false;
  #isMerging = false;
  #saving = 0;

  constructor(
    private readonly model: AnyModel<State>,
    signal: AbortSignal,
  ) {
    this.#gone.hidden = true;
    this.#line = new KernelLine(model, () => this.#lose(), signal);
    this.#recompile = button("Recompile", "Recompile (Ctrl-Enter)", () => this.#compile(), "tk-button tk-primary");
    this.#recompile.append(el("kbd", "", ["Ctrl ⏎"], { "aria-hidden": "true" }));
    this.#revert = button("Revert", "Go back to the generated source", () => this.#goBack());
    const merge = "Bring the edit that gave way together with the generated source";
    this.#merge = button("Merge", merge, () => this.#bringTogether());
    this.#stop = button("Stop", "Stop the comparison; the edit stays in place", () => this.#halt());
    const place = el("div", "tk-editor");
    const kernel = model.get("kernel");
    this.root = el(
      "section",
      "tk-panel tk-source",
      [
        el("header", "", [
          el("span", "tk-title", ["source.cu"]),
          el("span", "tk-dim", [kernel]),
          this.#edited,
          el("span", "tk-grow"),
          this.#stop,
          this.#merge,
          this.#revert,
          this.#recompile,
        ]),
        this.#gone,
        place,
        this.#problems,
        el("footer", "", [this.#status, el("span", "tk-grow"), this.#comparison]),
      ],
      { "aria-label": `Source of ${kernel}` },
    );
    makeFocusable(this.root, -1);
    const label = `CUDA C of ${kernel}. Ctrl-Enter recompiles; Escape, then Tab leaves the editor`;
    this.#editor = new Editor(place, model.get("text"), model.get("generated"), label, {
      onCompile: () => this.#compile(),
      onChange: () => this.#changed(),
    });
    keepKeys(this.root, () => false, signal);
    keepFocus(this.root, () => this.#editor.view.contentDOM, signal);
    // whoever leaves the editor or the page has typed what is to be kept
    place.addEventListener("focusout", () => this.#save(), { signal });
    window.addEventListener("pagehide", () => this.#save(), { signal });
    this.#listen(signal);
    signal.addEventListener("abort", () => {
      this.#save();
      this.#editor.view.destroy();
    });
    this.#showMarkers();
    this.#showState();
  }

  #listen(signal: AbortSignal): void {
    onChange(this.model, ["text"], () => this.#take(this.model.get("text")), signal);
    onChange(this.model, ["generated"], () => this.#takeGenerated(), signal);
    onChange(this.model, ["markers"], () => this.#showMarkers(), signal);
    onChange(this.model, ["busy"], () => this.#answered(), signal);
    onChange(this.model, ["status", "comparison", "verdict", "mergeable"], () => this.#showState(), signal);
  }

  get #isBusy(): boolean {
    return this.#isSent || this.model.get("busy") !== "";
  }

  // --- to the kernel ---------------------------------------------------------------------------------------------------

  #compile(): void {
    if (this.#isBusy || this.#line.isGone) return;
    this.#isSent = true;
    this.#editor.markCompiled();
    this.#save();
    this.#line.send({ kind: "recompile", text: this.#editor.text });
    this.#showState();
  }

  #goBack(): void {
    if (this.#isBusy || this.#line.isGone) return;
    this.#isSent = true;
    this.#editor.text = this.model.get("generated");
    this.#editor.markCompiled();
    this.#save();
    this.#line.send({ kind: "revert" });
    this.#showState();
    this.#editor.view.focus();
  }

  #bringTogether(): void {
    if (this.#isBusy || this.#line.isGone) return;
    this.#isSent = true;
    this.#save();
    this.#isMerging = true;
    this.#line.send({ kind: "merge" });
    this.#showState();
    this.#editor.view.focus();
  }

  #halt(): void {
    this.#line.send({ kind: "stop" });
  }

  /** What is typed is kept in the kernel, so that it outlives a reload of the page. */
  #changed(): void {
    this.#showEdited();
    window.clearTimeout(this.#saving);
    this.#saving = window.setTimeout(() => this.#save(), SAVE_AFTER_MS);
  }

  #save(): void {
    window.clearTimeout(this.#saving);
    this.#saving = 0;
    if (this.model.get("text") !== this.#editor.text) this.#line.save({ text: this.#editor.text });
  }

  // --- from the kernel -------------------------------------------------------------------------------------------------

  #take(text: string): void {
    // what is being typed right now is newer than what the kernel has
    if (!this.#saving) this.#editor.text = text;
    if (this.#isMerging) this.#editor.markCompiled();
  }

  #takeGenerated(): void {
    this.#editor.generated = this.model.get("generated");
    this.#showEdited();
  }

  #lose(): void {
    this.#gone.hidden = false;
    this.#isSent = false;
    this.#showState();
  }

  #answered(): void {
    if (!this.model.get("busy")) this.#isSent = this.#isMerging = false;
    this.#showState();
  }

  #showEdited(): void {
    this.#edited.hidden = !this.#editor.isEdited;
    this.#revert.disabled = this.#isBusy || this.#line.isGone || (!this.#editor.isEdited && !this.model.get("verdict"));
  }

  #showState(): void {
    const isBusy = this.#isBusy && !this.#line.isGone;
    const verdict = this.model.get("verdict");
    this.#recompile.disabled = isBusy || this.#line.isGone;
    const isComparing = isBusy && this.model.get("busy") === "comparing";
    // who presses it loses the focus with it
    if (!isComparing && document.activeElement === this.#stop) this.#editor.view.focus();
    this.#stop.hidden = !isComparing;
    this.#merge.hidden = !this.model.get("mergeable");
    this.#merge.disabled = isBusy || this.#line.isGone;
    this.#status.textContent = isBusy ? (isComparing ? "comparing…" : "compiling…") : this.model.get("status");
    this.#comparison.textContent = isBusy ? "" : this.model.get("comparison");
    this.#status.dataset.verdict = isBusy ? "" : verdict;
    this.#comparison.dataset.verdict = isBusy ? "" : verdict;
    this.root.dataset.state = isBusy ? "busy" : verdict;
    this.#showEdited();
  }

  #showMarkers(): void {
    const markers = this.model.get("markers");
    this.#editor.show(markers);
    this.#problems.hidden = markers.length === 0;
    this.#problems.setAttribute("aria-label", plural(markers.length, "problem"));
    this.#problems.replaceChildren(...markers.map((marker) => this.#problem(marker)));
    const [first] = markers;
    // who types is not carried off; when the panel stands in the page
    if (first && !this.#editor.view.hasFocus) requestAnimationFrame(() => requestAnimationFrame(() => this.#editor.reveal(first)));
  }

  #problem(marker: Marker): HTMLElement {
    const { line, column, severity, message } = marker;
    const where = column > 0 ? `${line}:${column}` : String(line);
    const row = button("", `${severity} at line ${line}: ${message}`, () => this.#editor.goTo(marker), "tk-problem");
    row.append(
      el("span", `tk-severity tk-${severity}`, [`${SIGNS[severity]} ${severity}`]),
      el("span", "tk-where", [where]),
      el("span", "tk-message", [message]),
    );
    return el("li", "", [row]);
  }
}

function render({ model, el: element, signal }: RenderProps<State>): void {
  element.append(new SourcePanel(model, signal).root);
}

export default { render };

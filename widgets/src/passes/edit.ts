// SPDX-License-Identifier: Apache-2.0
// The tile IR after a pass as a person edits it: what is typed is verified, and the passes behind go on from it.
import { button, el } from "../common/dom.ts";
import { focus, makeFocusable } from "../common/keyboard.ts";

export interface Marker {
  line: number;
  column: number;
  message: string;
}

/** What the kernel says of the last request. */
export interface Told {
  status: string;
  comparison: string;
  verdict: "" | "same" | "differs" | "failed";
  busy: "" | "compiling" | "comparing";
  markers: Marker[];
}

interface Requests {
  compile(text: string): void;
  revert(): void;
  stop(): void;
  close(): void;
}

export class StepEditor {
  readonly root: HTMLElement;
  readonly #title = el("span", "tk-title");
  readonly #area = el("textarea", "tk-tile-text", [], { spellcheck: "false", wrap: "off" });
  readonly #status = el("span", "tk-status", [], { role: "status" });
  readonly #comparison = el("span", "tk-comparison", [], { role: "status" });
  readonly #compile: HTMLButtonElement;
  readonly #revert: HTMLButtonElement;
  readonly #stop: HTMLButtonElement;

  constructor(requests: Requests, signal: AbortSignal) {
    const compile = (): void => {
      if (!this.#compile.disabled) requests.compile(this.#area.value);
    };
    this.#compile = button("Compile from here", "Go on compiling from this text (Ctrl-Enter)", compile, "tk-button tk-primary");
    this.#compile.append(el("kbd", "", ["Ctrl ⏎"], { "aria-hidden": "true" }));
    this.#revert = button("Revert", "Go back to what the compiler makes of the script", () => requests.revert());
    this.#stop = button("Stop", "Stop the comparison; the edit stays in place", () => requests.stop());
    makeFocusable(this.#area);
    this.#area.addEventListener(
      "keydown",
      (event) => {
        if (event.key === "Escape") requests.close();
        else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) compile();
        else return;
        event.preventDefault();
        event.stopPropagation();
      },
      { signal },
    );
    const close = button("Close", "Close the editor; what is compiled stays (Escape)", () => requests.close());
    this.root = el("section", "tk-panel tk-tile-editor", [
      el("header", "", [this.#title, el("span", "tk-grow"), this.#stop, close, this.#revert, this.#compile]),
      this.#area,
      el("footer", "", [this.#status, el("span", "tk-grow"), this.#comparison]),
    ]);
  }

  open(step: string, text: string): void {
    this.#title.textContent = `Tile IR after ${step}`;
    this.root.setAttribute("aria-label", `Editor of the tile IR after ${step}`);
    this.#area.setAttribute("aria-label", `Tile IR after ${step}. Ctrl-Enter compiles from here, Escape closes`);
    this.#area.value = text;
    focus(this.#area);
    this.#area.setSelectionRange(0, 0);
    this.root.scrollIntoView({ block: "nearest" });
  }

  show({ status, comparison, verdict, busy, markers }: Told, isGone: boolean): void {
    const isBusy = busy !== "" && !isGone;
    const places = markers.map(({ line, column, message }) => `line ${line}, column ${column}: ${message}`);
    this.#status.textContent = isBusy ? `${busy}…` : places.length ? places.join(" · ") : status;
    this.#status.dataset.verdict = isBusy ? "" : verdict;
    this.#comparison.textContent = isBusy ? "" : comparison;
    this.#comparison.dataset.verdict = isBusy ? "" : verdict;
    this.#compile.disabled = this.#revert.disabled = isBusy || isGone;
    this.#stop.hidden = busy !== "comparing" || isGone;
    this.root.dataset.state = isBusy ? "busy" : verdict;
    const [first] = markers;
    if (first && !isBusy && this.root.isConnected) this.#point(first);
  }

  /** Put the cursor where something is wrong. */
  #point({ line, column }: Marker): void {
    const lines = this.#area.value.split("\n");
    const at = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0) + column - 1;
    focus(this.#area);
    this.#area.setSelectionRange(at, at + 1);
    this.#area.scrollTop = ((line - 4) * this.#area.scrollHeight) / lines.length;
  }
}

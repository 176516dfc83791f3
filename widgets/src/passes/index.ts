// SPDX-License-Identifier: Apache-2.0
// The panel of passes: a list of them at the side, and what the chosen one changed, side by side.
import type { AnyModel, RenderProps } from "@anywidget/types";
import { button, el, keyLegend, milliseconds, plural, searchBox } from "../common/dom.ts";
import { GONE, hasKernel, KernelLine } from "../common/kernel.ts";
import { keepFocus, keepKeys, makeFocusable } from "../common/keyboard.ts";
import { foldStatic } from "../common/static.ts";
import type { Language } from "../common/syntax.ts";
import { DiffView } from "./diff.ts";
import { type Pass, type PassMessage, PassText, step } from "./model.ts";
import { Rail } from "./rail.ts";

interface State {
  kernel: string;
  passes: Pass[];
  index: number;
}

const KEPT_TEXTS = 16;
let panels = 0;

class PassPanel {
  readonly root: HTMLElement;
  readonly #rail: Rail;
  readonly #diff: DiffView;
  readonly #line: KernelLine;
  readonly #texts = new Map<number, PassText>();
  readonly #asked = new Set<number>();
  readonly #name = el("span", "tk-current");
  readonly #plus = el("span", "tk-pill tk-added");
  readonly #minus = el("span", "tk-pill tk-removed");
  readonly #word = el("span", "tk-dim");
  readonly #spoken = el("span", "tk-spoken", [], { role: "status" });
  readonly #error = el("div", "tk-pass-error", [], { role: "alert" });
  readonly #gone = el("div", "tk-gone", [GONE], { role: "alert" });
  readonly #totals = el("span", "tk-totals");
  readonly #find = searchBox("Find in pass");
  readonly #hits = el("span", "tk-dim");
  readonly #changedOnly: HTMLButtonElement;
  #hit = -1;
  #index = 0;
  #since = 0;

  constructor(
    private readonly model: AnyModel<State>,
    signal: AbortSignal,
  ) {
    this.#error.hidden = this.#gone.hidden = true;
    this.#rail = new Rail(`tk-${++panels}`, (index) => this.select(index));
    this.#diff = new DiffView(signal);
    this.#line = new KernelLine(model, () => (this.#gone.hidden = false), signal);
    this.#changedOnly = button("Changed only", "Changed passes only (c)", () => this.#toggleChanged(), "tk-toggle");
    this.#changedOnly.setAttribute("aria-pressed", "false");
    const stepper = el("span", "tk-stepper", [
      button("‹", "Previous changed pass (k)", () => this.#step(-1, true), ""),
      this.#name,
      button("›", "Next changed pass (j)", () => this.#step(1, true), ""),
    ]);
    const legend = keyLegend([
      ["j k", "changed pass"],
      ["J K", "any pass"],
      ["n p", "change"],
      ["e", "expand"],
      ["c", "changed only"],
      ["/", "find"],
    ]);
    this.root = el("section", "tk-panel tk-passes", [
      el("header", "", [
        el("span", "tk-title", ["Passes"]),
        stepper,
        this.#plus,
        this.#minus,
        this.#word,
        el("span", "tk-grow"),
        this.#hits,
        this.#find,
        this.#changedOnly,
      ]),
      this.#gone,
      el("div", "tk-passes-body", [this.#rail.element, el("div", "tk-main", [this.#error, this.#diff.element])]),
      el("footer", "", [legend, el("span", "tk-grow"), this.#totals]),
      this.#spoken,
    ]);
    makeFocusable(this.root, -1);
    keepKeys(this.root, (key) => this.#key(key), signal);
    keepFocus(this.root, () => this.#diff.viewport, signal);
    this.#find.addEventListener("input", () => this.#findNext(0), { signal });
    this.#find.addEventListener("keydown", (event) => this.#findKey(event), { signal });
    const onPasses = (): void => this.#show();
    const onMessage = (message: PassMessage): void => this.#receive(message);
    model.on("change:passes", onPasses);
    model.on("msg:custom", onMessage);
    signal.addEventListener("abort", () => {
      model.off("change:passes", onPasses);
      model.off("msg:custom", onMessage);
    });
    this.#show();
  }

  get #passes(): Pass[] {
    return this.model.get("passes");
  }

  select(index: number): void {
    if (this.#line.isGone && !this.#texts.has(index)) return;
    this.#since = performance.now();
    this.#index = index;
    this.#rail.select(index);
    this.#head(this.#passes[index]!);
    this.#line.save({ index });
    const text = this.#texts.get(index);
    if (text) this.#paint(text);
    else this.#ask(index);
  }

  #show(): void {
    const passes = this.#passes;
    this.root.setAttribute("aria-label", `Passes of ${this.model.get("kernel")}`);
    this.#texts.clear();
    this.#asked.clear();
    this.#rail.show(passes);
    const changed = passes.filter(({ status }) => status === "changed").length;
    const time = passes.reduce((sum, { ms }) => sum + ms, 0);
    this.#totals.textContent = `${plural(passes.length, "step")} · ${changed} changed the program · ${milliseconds(time)} in all`;
    if (passes.length) this.select(Math.min(this.model.get("index"), passes.length - 1));
  }

  #ask(index: number): void {
    if (this.#asked.has(index)) return;
    this.#asked.add(index);
    this.#line.send({ kind: "pass", index });
  }

  #receive(message: PassMessage): void {
    if (message.kind !== "pass") return;
    const { index } = message;
    this.#asked.delete(index);
    const text = new PassText(message, this.#passes[index]!.status);
    this.#texts.set(index, text);
    if (this.#texts.size > KEPT_TEXTS) this.#texts.delete(this.#texts.keys().next().value!);
    if (index === this.#index) this.#paint(text);
  }

  #head(pass: Pass): void {
    const number = el("b", "", [String(this.#index + 1).padStart(2, "0")]);
    this.#name.replaceChildren(number, ` ${pass.name}`);
    this.#plus.hidden = this.#minus.hidden = pass.status !== "changed";
    this.#plus.textContent = `+${pass.added}`;
    this.#minus.textContent = `−${pass.removed}`;
    const words = { changed: "", same: "no change · ", translated: `into ${pass.language} · `, failed: "failed · " };
    this.#word.textContent = words[pass.status] + milliseconds(pass.ms);
    this.#error.hidden = !pass.error;
    this.#error.textContent = pass.error;
  }

  #paint(text: PassText): void {
    const index = this.#index;
    const pass = this.#passes[index]!;
    const previous = this.#passes[index - 1];
    const languages = [languageOf(previous ?? pass), languageOf(pass)] as [Language, Language];
    const change = pass.status === "changed" ? `${plural(pass.added, "line")} added, ${pass.removed} removed` : pass.status;
    const label = `${pass.name}: ${change}`;
    this.#diff.show(text, { before: previous?.name ?? "as written", after: pass.name, languages, label });
    this.#spoken.textContent = `${index + 1} of ${this.#passes.length}, ${label}`;
    this.root.dataset.shown = String(index);
    this.#findNext(0);
    requestAnimationFrame(() => {
      this.root.dataset.ms = (performance.now() - this.#since).toFixed(1);
      // the next one is asked for ahead of the key
      const next = step(this.#passes, index, 1, true);
      if (!this.#texts.has(next)) this.#ask(next);
    });
  }

  #step(direction: 1 | -1, changedOnly: boolean): void {
    const index = step(this.#passes, this.#index, direction, changedOnly);
    if (index !== this.#index) this.select(index);
  }

  #toggleChanged(): void {
    const isOn = this.#changedOnly.getAttribute("aria-pressed") !== "true";
    this.#changedOnly.setAttribute("aria-pressed", String(isOn));
    this.#rail.changedOnly = isOn;
    this.#rail.select(this.#index);
  }

  #expand(): void {
    const text = this.#texts.get(this.#index);
    text?.expand(!text.isExpanded);
    this.#diff.refresh();
  }

  #key(key: string): boolean {
    const actions: Record<string, () => void> = {
      j: () => this.#step(1, true),
      k: () => this.#step(-1, true),
      J: () => this.#step(1, false),
      K: () => this.#step(-1, false),
      n: () => this.#diff.change(1),
      p: () => this.#diff.change(-1),
      e: () => this.#expand(),
      c: () => this.#toggleChanged(),
      "/": () => this.#find.focus(),
      ArrowLeft: () => this.#diff.slide(-8),
      ArrowRight: () => this.#diff.slide(8),
    };
    const isInList = document.activeElement?.getAttribute("role") === "listbox";
    if (isInList) {
      actions.ArrowDown = () => this.#step(1, this.#changedOnly.getAttribute("aria-pressed") === "true");
      actions.ArrowUp = () => this.#step(-1, this.#changedOnly.getAttribute("aria-pressed") === "true");
    }
    const action = actions[key];
    action?.();
    return action !== undefined;
  }

  // --- find ------------------------------------------------------------------------------------------------------------

  #findKey(event: KeyboardEvent): void {
    if (event.key === "Enter") this.#findNext(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") {
      this.#find.value = "";
      this.#findNext(0);
      this.#diff.viewport.focus({ preventScroll: true });
    } else return;
    event.preventDefault();
  }

  #findNext(direction: -1 | 0 | 1): void {
    const needle = this.#find.value.toLowerCase();
    const text = this.#texts.get(this.#index);
    this.#hits.textContent = "";
    if (!text || !needle) return;
    const places = hits(text, needle);
    this.#hit = direction === 0 ? 0 : (this.#hit + direction + places.length) % Math.max(places.length, 1);
    const place = places[this.#hit];
    this.#hits.textContent = place ? `${this.#hit + 1} of ${places.length}` : "not found";
    if (!place) return;
    const row = text.reveal(...place);
    this.#diff.refresh();
    this.#diff.reveal(row, needle);
  }
}

/** Lines in which something stands: those of the new text, and of the old one those that are gone. */
function hits(text: PassText, needle: string): ["left" | "right", number][] {
  const found = (lines: string[], side: "left" | "right") =>
    lines.flatMap((line, index): ["left" | "right", number][] => (line.toLowerCase().includes(needle) ? [[side, index]] : []));
  const after = found(text.after, "right");
  const shown = new Set(text.after);
  const before = found(text.before, "left").filter(([, index]) => !shown.has(text.before[index]!));
  return [...after, ...before];
}

const languageOf = (pass: Pass): Language => (pass.language === "CUDA C" ? "cuda" : "ir");

function render({ model, el: element, signal }: RenderProps<State>): void {
  element.hidden = !hasKernel(model);
  if (element.hidden) return;
  element.append(new PassPanel(model, signal).root);
  foldStatic(element, model, signal);
}

export default { render };

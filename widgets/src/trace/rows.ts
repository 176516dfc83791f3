// SPDX-License-Identifier: Apache-2.0
// The rows of the list: steps under their kernels and phases, or the steps of two compiles beside each other.
import { el, milliseconds, plural } from "../common/dom.ts";
import { badgeOf, blocks, signOf } from "./filters.ts";
import { basePhase, type Compile, type Step } from "./journal.ts";
import type { Row } from "./list.ts";
import type { Comparison, Pair } from "./queries.ts";

const INDENT = 12;

export const keyOf = (step: Step): string => `${step.compile.number}:${step.begin.seq}`;
export const pairKey = (index: number): string => `pair:${index}`;

/** A compile in a few words. */
export function summary(compile: Compile): string {
  const changed = compile.steps.filter(({ status }) => status === "changed").length;
  const status = compile.status === "done" ? "" : compile.status;
  return [plural(compile.steps.length, "step"), `${changed} changed`, milliseconds(compile.ms), status].filter(Boolean).join(" · ");
}

export interface Marks {
  /** The steps whose result has what is looked for. */
  holders: ReadonlySet<Step>;
  /** What another step will be compared with. */
  marked: Step | undefined;
  hasKernels: boolean;
}

export function stepRows(steps: readonly Step[], { holders, marked, hasKernels }: Marks): Row[] {
  const rows: Row[] = [];
  let previous: Step | undefined;
  for (const step of steps) {
    const { compile, phase } = step;
    const isNew = compile !== previous?.compile;
    if (isNew && hasKernels) rows.push(heading(compile.name, summary(compile), "tk-heading-kernel"));
    if (isNew || phase !== previous?.phase) {
      const own = steps.filter((one) => one.compile === compile && one.phase === phase && one.begin.depth === 0);
      rows.push(heading(phase, milliseconds(own.reduce((sum, { ms }) => sum + ms, 0))));
    }
    rows.push(stepRow(step, holders.has(step), step === marked));
    previous = step;
  }
  return rows.length ? rows : [heading("no step is of this kind")];
}

export function pairRows({ a, b, pairs, parting }: Comparison): Row[] {
  const rows: Row[] = [heading(`A ${a.name}`, summary(a), "tk-heading-kernel"), heading(`B ${b.name}`, summary(b), "tk-heading-kernel")];
  let phase = "";
  pairs.forEach((pair, index) => {
    const here = basePhase((pair.a ?? pair.b)!.phase);
    if (here !== phase) rows.push(heading((phase = here)));
    rows.push(pairRow(pair, index, index === parting));
  });
  return rows;
}

const heading = (words: string, remark = "", className = ""): Row => ({
  key: "",
  draw: () => el("div", `tk-heading ${className}`, [el("span", "", [words]), el("span", "tk-heading-remark", [remark])], { role: "presentation" }),
});

/** A step: its number, its sign, what it is called, what it changed, how long it took. */
function stepRow(step: Step, isHolder: boolean, isMarked: boolean): Row {
  const draw = (): HTMLElement => {
    const { begin } = step;
    const name = el("span", "tk-pass-name", [step.name]);
    name.style.paddingLeft = `${begin.depth * INDENT}px`;
    const node = el(
      "div",
      `tk-pass tk-is-${badgeOf(step)}${isHolder ? " tk-holder" : ""}${isMarked ? " tk-marked" : ""}`,
      [
        el("span", "tk-pass-number", [step.number], { "aria-hidden": "true" }),
        el("span", "tk-sign-of", [signOf(step)], { "aria-hidden": "true" }),
        name,
        change(step),
        el("span", "tk-pass-time", [step.end ? milliseconds(step.ms) : ""]),
      ],
      { role: "option", "aria-label": `${step.number} ${step.name}: ${step.words}`, "data-index": String(begin.index) },
    );
    node.title = [`${step.name}: ${step.words}`, step.end ? milliseconds(step.ms) : "", isHolder ? "has what is looked for" : ""].filter(Boolean).join(" · ");
    return node;
  };
  return { key: keyOf(step), draw };
}

function change(step: Step): HTMLElement {
  const { end, status } = step;
  if (status === "changed" && end!.add !== null && end!.del !== null) {
    const bars = blocks(end!.add, end!.del).map((what) => el("i", `tk-${what}`));
    return el("span", "tk-pass-change", [
      el("span", "tk-plus", [`+${end!.add}`]),
      el("span", "tk-minus", [`−${end!.del}`]),
      el("span", "tk-bars", bars, { "aria-hidden": "true" }),
    ]);
  }
  const words = { changed: "changed", same: end?.rebuilt ? "rebuilt" : "", translated: "translates", failed: "ERROR", interrupted: "interrupted", aborted: "aborted", unfinished: "unfinished" };
  return el("span", "tk-pass-word", [words[status]]);
}

export function wordsOf({ a, b, isSame }: Pair): string {
  if (!a || !b) return a ? "only in A" : "only in B";
  if (a.isBroken !== b.isBroken) return a.isBroken ? "failed in A" : "failed in B";
  return isSame ? "same result" : "results differ";
}

/** A step of two compiles: whether its results are the same, or which of the two has it. */
function pairRow(pair: Pair, index: number, isFirstOther: boolean): Row {
  const draw = (): HTMLElement => {
    const step = (pair.a ?? pair.b)!;
    const words = wordsOf(pair);
    const sign = pair.isSame ? "=" : !pair.a ? "+" : !pair.b ? "−" : "≠";
    return el(
      "div",
      `tk-pass tk-pair ${pair.isSame ? "tk-is-same" : "tk-is-changed"}${isFirstOther ? " tk-parts" : ""}`,
      [
        el("span", "tk-pass-number", [step.number], { "aria-hidden": "true" }),
        el("span", "tk-sign-of", [sign], { "aria-hidden": "true" }),
        el("span", "tk-pass-name", [step.name]),
        el("span", "tk-pass-word", [isFirstOther ? "parts here" : words]),
      ],
      { role: "option", "aria-label": `${step.name}: ${words}${isFirstOther ? ", the first" : ""}`, title: `${step.name}: ${words}` },
    );
  };
  return { key: pairKey(index), draw };
}

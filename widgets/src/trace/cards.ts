// SPDX-License-Identifier: Apache-2.0
// What stands above the texts of a step: why it failed, what the edit store said, what the assembler counted.
import { button, el, setPressed, toggleButton } from "../common/dom.ts";
import { makeFocusable } from "../common/keyboard.ts";
import type { Noted } from "./form.ts";
import type { Compile, Run, Step } from "./journal.ts";
import type { Comparison, Pair } from "./queries.ts";

/** What is to be said of a step, and at the last one of its compile; `isEdit` says which of the edited sources is shown. */
export function stepCards(step: Step, isEdit: boolean, go: (step: Step) => void, turn: (toEdit: boolean) => void): HTMLElement[] {
  const isLast = step === step.compile.steps.at(-1);
  const own = [errorBox(step, go), ownCard(step), unprintable(step), editCard(step), figures(step.notes.get("ptxas"))];
  const cards = [...own, ...(isLast ? compileCards(step.compile) : []), step.isEdited ? editSwitch(isEdit, turn) : undefined];
  return cards.filter((card) => card !== undefined);
}

/** Where two compiles part, and why their steps at a place did not come to their end. */
export function pairCards({ pairs, parting }: Comparison, at: number, go: (step: Step) => void, goToParting: () => void, leave: () => void): HTMLElement[] {
  const { a, b } = pairs[at]!;
  const broken = [a, b].map((step) => step && errorBox(step, go)).filter((box) => box !== undefined);
  return [partingCard(pairs[parting], goToParting, leave), ...broken];
}

/** Why a step did not come to its end; undefined: it did. */
function errorBox(step: Step, go: (step: Step) => void): HTMLElement | undefined {
  if (!step.isBroken) return undefined;
  const box = el("div", `tk-error-box tk-is-${step.status}`, [], { role: "alert" });
  const { failure } = step;
  if (!failure) {
    box.append(el("b", "", ["did not finish (process ended)"]), el("div", "tk-error-where", ["What it was given is below."]));
    const alone = commandAlone(step);
    if (alone) box.append(el("div", "tk-error-where", ["To run this step alone:"]), el("pre", "", [alone]));
    box.append(el("div", "tk-error-where", ["To run all of it again:"]), el("pre", "", [command(step.compile.run)]));
    return box;
  }
  const culprit = step.compile.steps.find(({ begin }) => begin.seq === failure.by);
  if (failure.status === "aborted" && culprit) {
    box.append(el("b", "", [`aborted by ${culprit.number} ${culprit.name}`]), button("Go there", `Go to ${culprit.name}`, () => go(culprit)));
    return box;
  }
  box.append(el("b", "", [failure.status === "interrupted" ? `interrupted: ${failure.type}` : failure.type]));
  // its columns mean something: a compiler puts a caret under them
  if (failure.message) box.append(el("pre", "", [failure.message]));
  if (failure.where) box.append(el("div", "tk-error-where", [failure.where]));
  if (failure.traceback) {
    const summary = el("summary", "", ["Traceback"]);
    makeFocusable(summary);
    box.append(el("details", "", [summary, el("pre", "", [failure.traceback.trimEnd()])]));
  }
  return box;
}

/** The command that runs a step by itself on what it was given; undefined: a toolchain ran it, or it is a script's own. */
function commandAlone({ begin, compile, notes }: Step): string | undefined {
  const { folder } = compile.run.line;
  if (!folder || notes.has("custom") || !/^(run\d+_)?(tile|lower|hidet|codegen)$/.test(begin.phase)) return undefined;
  return `python3 -m tilekit trace rerun ${begin.index} ${quoted(folder)}`;
}

/** A word as a shell takes it. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** The command that made a run, for a shell. */
export function command({ line: { argv, cwd } }: Run): string {
  const words = argv.length ? ["python3", ...argv] : ["python3"];
  return [...(cwd ? [`cd ${quoted(cwd)} &&`] : []), "TL_LOWER_TRACE=1", ...words.map(quoted)].join(" ");
}

/** What the edit store did with the source of this step. */
function editCard({ codegen }: Step): HTMLElement | undefined {
  if (!codegen || (!codegen.tag && !codegen.messages.length)) return undefined;
  const card = el("div", "tk-card");
  // the first time there is nothing to heed
  if (codegen.tag) card.append(el("span", codegen.tag === "INIT" ? "tk-pill" : "tk-pill tk-warned", [codegen.tag]));
  const said = codegen.messages.map((message) => (codegen.tag && message.startsWith(`${codegen.tag} `) ? message.slice(codegen.tag.length + 1) : message));
  const words = said.length ? said.join(" · ") : codegen.path ? `from ${codegen.path}` : "";
  card.append(el("span", "", [words]));
  return card;
}

/** Which of the two is shown: what was edited, or what the source was generated from. */
function editSwitch(isEdit: boolean, turn: (toEdit: boolean) => void): HTMLElement {
  const choice = (words: string, toEdit: boolean): HTMLElement => {
    const node = toggleButton(words, words, () => turn(toEdit));
    setPressed(node, isEdit === toEdit);
    return node;
  };
  return el("div", "tk-card", [choice("Generated → compiled", true), choice("The program → generated", false)]);
}

/** What the assembler counted: registers, shared memory, spills. */
function figures(noted: Noted["ptxas"] | undefined): HTMLElement | undefined {
  if (!noted) return undefined;
  const facts = Object.entries(noted).filter(([, value]) => typeof value !== "object");
  return el("div", "tk-card tk-figures", [el("b", "", ["ptxas"]), ...facts.map(([name, value]) => fact(name.replaceAll("_", " "), String(value)))]);
}

const fact = (name: string, value: string): HTMLElement => el("span", "", [`${name} `, el("b", "", [value])]);

/** That a step is a pass of the person's own, and where it is written. */
function ownCard(step: Step): HTMLElement | undefined {
  const own = step.notes.get("custom");
  return own && el("div", "tk-card", [el("span", "tk-pill", ["custom pass"]), `${own.class} in ${own.file}, line ${own.line}`]);
}

/** A text that could not be printed, and why. */
function unprintable(step: Step): HTMLElement | undefined {
  const noted = step.notes.get("unprintable");
  return noted && el("div", "tk-card", [el("span", "tk-pill tk-warned", ["could not print"]), `the text ${noted.side} it: ${noted.reason}`]);
}

/** What was noted of a compile as a whole: what it died of, figures, and which stages it lacks. */
function compileCards({ notes }: Compile): (HTMLElement | undefined)[] {
  const error = notes.get("error");
  const absent = notes.get("absent");
  const died = error && el("div", "tk-error-box", [el("b", "", [error.type]), el("pre", "", [error.message]), el("div", "", [error.where ?? ""])], { role: "alert" });
  const lacks = absent && el("div", "tk-card", [el("b", "", [`no ${absent.stage}`]), el("span", "tk-dim", [[absent.why, absent.help].filter(Boolean).join(": ")])]);
  return [died, figures(notes.get("ptxas")), lacks];
}

/** Where two compiles part, and the way out of their comparison. */
function partingCard(first: Pair | undefined, go: () => void, leave: () => void): HTMLElement {
  const step = first && (first.a ?? first.b)!;
  const wasOther = first?.a?.begin.before !== first?.b?.begin.before;
  const card = el("div", "tk-card", [!step ? "A and B never differ" : wasOther ? "A and B differ before any pass: see" : "A and B part at"]);
  if (step) card.append(button(`${step.number} ${step.name}`, "Go to where they part", go));
  card.append(el("span", "tk-grow"), button("Leave", "Leave the comparison (Esc)", leave));
  return card;
}

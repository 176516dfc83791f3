// SPDX-License-Identifier: Apache-2.0
// What stands above the texts of a step: why it failed, what the edit store said, what the assembler counted.
import { button, el } from "../common/dom.ts";
import type { Run, Step } from "./journal.ts";

/** Why a step did not come to its end; undefined: it did. */
export function errorBox(step: Step, go: (step: Step) => void): HTMLElement | undefined {
  if (!step.isBroken) return undefined;
  const box = el("div", `tk-error-box tk-is-${step.status}`, [], { role: "alert" });
  const { failure } = step;
  if (!failure) {
    box.append(el("b", "", ["did not finish (process ended)"]), el("div", "tk-error-where", ["What it was given is below. To run all of it again:"]));
    box.append(el("pre", "", [command(step.compile.run)]));
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
  if (failure.traceback) box.append(el("details", "", [el("summary", "", ["Traceback"]), el("pre", "", [failure.traceback.trimEnd()])]));
  return box;
}

/** The command that made a run, for a shell. */
export function command({ line: { argv, cwd } }: Run): string {
  const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
  const words = argv.length ? ["python3", ...argv] : ["python3"];
  return [...(cwd ? [`cd ${quoted(cwd)} &&`] : []), "TL_LOWER_TRACE=1", ...words.map(quoted)].join(" ");
}

/** What the edit store did with the source of this step. */
export function editCard({ codegen }: Step): HTMLElement | undefined {
  if (!codegen || (!codegen.tag && !codegen.messages.length)) return undefined;
  const card = el("div", "tk-card");
  if (codegen.tag) card.append(el("span", "tk-pill tk-warned", [codegen.tag]));
  const words = codegen.messages.length ? codegen.messages.join(" · ") : codegen.path ? `from ${codegen.path}` : "";
  card.append(el("span", "", [words]));
  return card;
}

/** What a step noted about the machine code: registers, shared memory, spills. */
export function figures(step: Step): HTMLElement | undefined {
  const noted = step.notes.get("ptxas");
  if (typeof noted !== "object" || noted === null) return undefined;
  const card = el("div", "tk-card tk-figures", [el("b", "", ["ptxas"])]);
  for (const [name, value] of Object.entries(noted)) {
    if (typeof value === "object" && value !== null) continue;
    card.append(el("span", "", [`${name.replaceAll("_", " ")} `, el("b", "", [String(value)])]));
  }
  return card;
}

// SPDX-License-Identifier: Apache-2.0
// The keys of the viewer, where they act and where they are explained.
import { button, el } from "../common/dom.ts";
import type { Run } from "./journal.ts";
import { command } from "./cards.ts";

type Keys = readonly (readonly [keys: string, what: string])[];

export const KEYS: Keys = [
  ["j k", "next, previous pass that did something"],
  ["J K", "next, previous pass of the list"],
  ["[ ]", "previous, next phase"],
  ["/", "find in this text and in all passes"],
  ["c", "list only passes that did something"],
  ["b", "blame: which pass made each line"],
  ["m", "the lines of every language beside each other"],
  ["x", "mark a pass, then compare another with it"],
  ["y Y", "copy the text after, before"],
  ["s", "fold the list away"],
  ["< >", "make the list narrower, wider"],
  ["?", "this help"],
  ["Esc", "leave what is open"],
];

/** The help: every key, by what it is for, and which run this is. */
export function helpDialog(groups: Record<string, Keys>, runs: readonly Run[], onClose: () => void): HTMLElement {
  const lists = Object.entries(groups).map(([name, keys]) => el("section", "", [el("b", "", [name]), keyList(keys)]));
  const facts = runs.filter(({ line }) => line.script).map((run) => runFacts(run));
  const close = button("Close", "Close the help (Esc)", onClose);
  return el("div", "tk-help", [el("div", "tk-help-head", [el("b", "", ["Keys"]), el("span", "tk-grow"), close]), el("div", "tk-help-keys", lists), ...facts], {
    role: "dialog",
    "aria-label": "Help",
  });
}

function keyList(keys: Keys): HTMLElement {
  const list = el("dl");
  for (const [names, what] of keys) {
    list.append(el("dt", "", names.split(" ").map((name) => el("kbd", "", [name]))), el("dd", "", [what]));
  }
  return list;
}

function runFacts(run: Run): HTMLElement {
  const { script, started, version, pid, rank } = run.line;
  const facts = [started.replace("T", " ").replace(/\.\d+Z$/, " UTC"), `tilekit ${version}`, `process ${pid}`, rank === null ? "" : `rank ${rank}`];
  return el("div", "tk-help-run", [el("b", "", [script]), ` ${facts.filter(Boolean).join(" · ")}`, el("pre", "", [command(run)])]);
}

// SPDX-License-Identifier: Apache-2.0
// A step on paper, which has no scroll bar: what it changed, with some lines around.
import { el } from "../common/dom.ts";
import { hunks } from "../common/textdiff.ts";
import type { Subject } from "./subject.ts";

const CONTEXT = 3;

export function onPaper({ step, words, before, after, isTranslation }: Subject, cards: Iterable<Element>): HTMLElement[] {
  const title = [step.compile.name, `${step.number} ${step.name}`, words].filter(Boolean).join(" · ");
  const text = after === null ? before.join("\n") : isTranslation ? after.join("\n") : changes(before, after);
  return [el("h1", "", [title]), ...[...cards].map((card) => card.cloneNode(true) as HTMLElement), el("pre", "", [text])];
}

function changes(before: readonly string[], after: readonly string[]): string {
  const parts = hunks(before, after).map(({ removed, added }) => {
    const lines = (sign: string, from: readonly string[], start: number, stop: number): string[] => from.slice(Math.max(0, start), stop).map((line) => `${sign} ${line}`);
    return [
      `@@ ${removed.start + 1} → ${added.start + 1} @@`,
      ...lines(" ", before, removed.start - CONTEXT, removed.start),
      ...lines("-", before, removed.start, removed.stop),
      ...lines("+", after, added.start, added.stop),
      ...lines(" ", before, removed.stop, removed.stop + CONTEXT),
    ].join("\n");
  });
  return parts.length ? parts.join("\n") : after.join("\n");
}

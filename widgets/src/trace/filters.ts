// SPDX-License-Identifier: Apache-2.0
// Which steps are listed, and how many of each kind there are. No DOM here.
import type { Status, Step } from "./journal.ts";

/** What the badges count, each with the sign that its steps have in the list. */
export const BADGES = [
  { name: "changed", sign: "●", word: "changed", what: "Steps that changed the program" },
  { name: "same", sign: "○", word: "no change", what: "Steps that changed nothing" },
  { name: "failed", sign: "✕", word: "failed", what: "Steps that did not come to their end" },
  { name: "codegen", sign: "◆", word: "codegen", what: "Steps that write another language" },
] as const;

type Badge = (typeof BADGES)[number]["name"];

const BADGE_OF: Record<Status, Badge> = {
  changed: "changed",
  same: "same",
  translated: "codegen",
  failed: "failed",
  interrupted: "failed",
  aborted: "failed",
  unfinished: "failed",
};

export const badgeOf = (step: Step): Badge => BADGE_OF[step.status];
export const signOf = (step: Step): string => BADGES.find(({ name }) => name === badgeOf(step))!.sign;

export interface Filter {
  /** Only the steps of this compile. */
  compile: number | undefined;
  phase: string | undefined;
  badge: Badge | undefined;
  /** Only passes with this in their name. */
  name: string;
  /** Only steps that did something. */
  isEventful: boolean;
}

export const EVERYTHING: Filter = { compile: undefined, phase: undefined, badge: undefined, name: "", isEventful: false };

/** The steps that are listed; those without a phase, a kind or a name that is asked for are not. */
export function listed(steps: readonly Step[], filter: Filter): Step[] {
  const name = filter.name.trim().toLowerCase();
  return steps.filter(
    (step) =>
      (filter.compile === undefined || step.compile.number === filter.compile) &&
      (filter.phase === undefined || step.phase === filter.phase) &&
      (filter.badge === undefined || badgeOf(step) === filter.badge) &&
      (!filter.isEventful || step.isEventful) &&
      step.name.toLowerCase().includes(name),
  );
}

/** The phases of some steps, in the order in which they first appear, each with how many steps it has. */
export function phases(steps: readonly Step[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { phase } of steps) counts.set(phase, (counts.get(phase) ?? 0) + 1);
  return counts;
}

/** The next step in a direction among those that are listed; the one given where there is none. */
export function step(shown: readonly Step[], from: Step, direction: 1 | -1, eventfulOnly: boolean): Step {
  const order = (one: Step): [number, number] => [one.compile.number, one.begin.seq];
  const isBeyond = (one: Step): boolean => {
    const [[c, seq], [fromC, fromSeq]] = [order(one), order(from)];
    return direction * (c - fromC || seq - fromSeq) > 0;
  };
  // of steps that all do nothing one may want to see the next all the same
  const skips = eventfulOnly && shown.some((one) => one.isEventful);
  const ahead = shown.filter((one) => isBeyond(one) && (!skips || one.isEventful));
  return (direction === 1 ? ahead[0] : ahead[ahead.length - 1]) ?? from;
}

/** Five blocks for a change: how many are filled says how large it is, their colors of what it consists. */
export function blocks(added: number, removed: number): ("added" | "removed" | "empty")[] {
  const all = added + removed;
  if (!all) return [];
  const filled = Math.min(5, Math.ceil(Math.log2(all + 1)));
  const green = added && removed ? Math.min(filled - 1, Math.max(1, Math.round((filled * added) / all))) : added ? filled : 0;
  const red = filled === 1 ? 1 - green : filled - green;
  return [...Array(green).fill("added"), ...Array(red).fill("removed"), ...Array(5 - filled).fill("empty")];
}

// SPDX-License-Identifier: Apache-2.0
// The strip beside the rows that shows where in all of them the changes are.
import { el } from "../common/dom.ts";
import { Show } from "./diffalign.ts";
import type { DiffText, Row } from "./difftext.ts";

const MAX_MARKS = 240;
const STYLES: Partial<Record<Show, string>> = {
  [Show.Edited]: "both",
  [Show.Replaced]: "both",
  [Show.Removed]: "removed",
  [Show.Added]: "added",
  [Show.Indented]: "indented",
};

export class Ruler {
  readonly element = el("div", "tk-ruler", [], { "aria-hidden": "true" });

  constructor(jump: (share: number) => void, signal: AbortSignal) {
    const onClick = ({ clientY }: MouseEvent): void => {
      const { top, height } = this.element.getBoundingClientRect();
      jump((clientY - top) / height);
    };
    this.element.addEventListener("click", onClick, { signal });
  }

  /** One mark for each stretch of changes; stretches that would lie on each other become one. */
  paint(text: DiffText, tops: readonly number[], height: number): void {
    const { rows } = text;
    const scale = 1 / Math.max(tops[rows.length]!, height, 1);
    const marks: { style: string; top: number; bottom: number }[] = [];
    rows.forEach((row, index) => {
      const style = styleOf(row, text);
      if (!style) return;
      const last = marks[marks.length - 1];
      const top = tops[index]! * scale;
      const bottom = tops[index + 1]! * scale;
      const touches = last && top - last.bottom < 1 / MAX_MARKS && (last.style === style || last.bottom - last.top < 1 / MAX_MARKS);
      if (touches) {
        last.bottom = bottom;
        if (last.style !== style) last.style = "both";
      } else {
        marks.push({ style, top, bottom });
      }
    });
    this.element.replaceChildren(
      ...marks.map(({ style, top, bottom }) => {
        const mark = el("i", `tk-${style}`);
        mark.style.top = `${100 * top}%`;
        mark.style.height = `max(2px, ${100 * (bottom - top)}%)`;
        return mark;
      }),
    );
  }
}

function styleOf({ show, shows, left, right }: Row, text: DiffText): string | undefined {
  const isMoved = (show === Show.Removed && text.moveAt({ side: "left", line: left })) || (show === Show.Added && text.moveAt({ side: "right", line: right }));
  return isMoved ? "moved" : shows === "left" ? "removed" : shows === "right" ? "added" : STYLES[show];
}

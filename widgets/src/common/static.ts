// SPDX-License-Identifier: Apache-2.0
// What the notebook file keeps of a panel.
import type { AnyModel } from "@anywidget/types";
import { el } from "./dom.ts";
import { KernelLine } from "./kernel.ts";

/**
 * The saved copy above a panel is there for those who read without a kernel. Its lines stay; while there is a kernel,
 * what they open to is in the panel, so in the page, and never in the file, they are plain lines.
 */
export function foldStatic(element: HTMLElement, model: AnyModel, signal: AbortSignal): void {
  // when the panel stands in the page
  requestAnimationFrame(() => {
    const unfold = copiesAbove(element).map(fold);
    new KernelLine(model, () => unfold.forEach((again) => again()), signal);
  });
}

function copiesAbove(element: HTMLElement): Element[] {
  const outputs = [...(element.closest(".jp-OutputArea")?.querySelectorAll(".jp-OutputArea-child") ?? [])];
  const above = outputs.slice(0, outputs.findIndex((output) => output.contains(element)));
  return above.flatMap((output) => [...output.querySelectorAll(".tk-static > details")]);
}

function fold(copy: Element): () => void {
  const summary = copy.querySelector(":scope > summary")!;
  const line = el("div", "tk-line", [...summary.childNodes]);
  copy.replaceWith(line);
  return () => {
    summary.append(...line.childNodes);
    line.replaceWith(copy);
  };
}

// SPDX-License-Identifier: Apache-2.0
// What the notebook file keeps of a panel.
import { el } from "./dom.ts";

/**
 * The saved copy of what the panels show is there for those who read without a kernel. Its lines stay; what they open to
 * is in the panels, so here, and only in the page, they are plain lines. The file is not touched.
 */
export function foldStatic(element: HTMLElement): void {
  for (const copy of element.closest(".jp-OutputArea")?.querySelectorAll(".tk-static > details") ?? []) {
    const line = el("div", "tk-line");
    line.append(...(copy.querySelector(":scope > summary")?.childNodes ?? []));
    copy.replaceWith(line);
  }
}

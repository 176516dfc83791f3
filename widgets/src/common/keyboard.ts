// SPDX-License-Identifier: Apache-2.0
// Keys that are pressed in a panel stay in it. JupyterLab listens on the document and would insert a cell at `b` and
// delete one at `d d`: it must be kept from it both by an attribute on the very element that has the focus and by
// stopping the event. Keys with Ctrl, Alt or Meta go on to JupyterLab, so that saving works.

const ATTRIBUTE = "data-lm-suppress-shortcuts";

/** Let an element take the focus, in its place in the Tab order or, with -1, only from code. */
export function makeFocusable(element: HTMLElement, tabIndex = 0): void {
  element.tabIndex = tabIndex;
  element.setAttribute(ATTRIBUTE, "true");
}

/** Give an element the focus; what it stands in, such as a notebook, does not scroll. */
export function focus(element: Element | null | undefined): void {
  if (element instanceof HTMLElement) element.focus({ preventScroll: true });
}

function isTyping(event: Event): boolean {
  const target = event.target;
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

/** Keep unmodified keys in `root`, and hand those that nobody is typing with to `onKey`, which says whether it used it. */
export function keepKeys(root: HTMLElement | Document, onKey: (key: string, event: KeyboardEvent) => boolean, signal: AbortSignal): void {
  root.addEventListener(
    "keydown",
    (pressed) => {
      const event = pressed as KeyboardEvent;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      event.stopPropagation();
      if (!isTyping(event) && onKey(event.key, event)) event.preventDefault();
    },
    { signal },
  );
}

/**
 * A notebook takes the focus when the mouse goes down in a cell that is not active; take it back from what is around when
 * it goes up, and leave it where the click has put it.
 */
export function keepFocus(root: HTMLElement, home: () => HTMLElement, signal: AbortSignal): void {
  root.addEventListener(
    "click",
    () => {
      if (document.activeElement !== root && document.activeElement?.contains(root)) focus(home());
    },
    { signal },
  );
}

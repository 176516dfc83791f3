// SPDX-License-Identifier: Apache-2.0
// A page with nothing but the diff view, for tests/browser/test_trace_diff.py.
import { keepKeys, makeFocusable } from "../../src/common/keyboard.ts";
import { DiffView, type Shown } from "../../src/trace/diff.ts";

declare global {
  interface Window {
    view: DiffView;
    shown: Shown;
    told: { lines: [string, number][]; changes: number; blamed: number[] };
  }
}

const { signal } = new AbortController();
window.told = { lines: [], changes: 0, blamed: [] };
const view = new DiffView(signal, {
  onLine: (side, line) => void window.told.lines.push([side, line]),
  onChange: () => {
    location.hash = view.state;
    window.told.changes++;
  },
  onBlame: (line) => void window.told.blamed.push(line),
});
window.view = view;
const root = document.createElement("section");
root.className = "tk-panel";
root.style.height = "100vh";
const bar = document.createElement("header");
bar.append(view.switches);
root.append(bar, view.element);
makeFocusable(root, -1);
keepKeys(root, (_, event) => view.key(event), signal);
document.body.append(root);
view.state = location.hash.slice(1);
view.show(window.shown);

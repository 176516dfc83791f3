// SPDX-License-Identifier: Apache-2.0
// The page of a run: the viewer over the journal that stands in it.
import { button, el } from "../common/dom.ts";
import { recall, remember } from "../common/remember.ts";
import { Viewer } from "../trace/viewer.ts";
import { type Chunk, unpacked } from "./journals.ts";

type Theme = "light" | "dark";

const system = matchMedia("(prefers-color-scheme: dark)");
const theme = button("", "", () => choose(isDark() ? "light" : "dark"));

const isDark = (): boolean => document.documentElement.classList.contains("dark");

function paint(chosen: Theme): void {
  document.documentElement.classList.toggle("dark", chosen === "dark");
  theme.textContent = chosen === "dark" ? "Light" : "Dark";
  theme.title = `Change to the ${chosen === "dark" ? "light" : "dark"} theme`;
  theme.setAttribute("aria-label", theme.title);
}

function choose(chosen: Theme): void {
  remember("theme", chosen);
  paint(chosen);
}

/** What was chosen here before, else what the system has. */
function paintChosen(): void {
  const chosen = recall("theme");
  paint(chosen === "light" || chosen === "dark" ? chosen : system.matches ? "dark" : "light");
}

/** Ink on white paper, whatever is on the screen. */
function paintForPaper(): void {
  if (!isDark()) return;
  paint("light");
  addEventListener("afterprint", () => paint("dark"), { once: true });
}

function chunks(): Chunk[] {
  const nodes = document.querySelectorAll<HTMLElement>("script[data-tk]");
  return [...nodes].map((node) => ({ kind: node.dataset.tk as Chunk["kind"], text: node.textContent ?? "" }));
}

async function open(): Promise<void> {
  const journal = await unpacked(chunks());
  let said = location.hash;
  let isAwaited = false;
  // the browser takes its time over an address: it comes after what is shown
  const say = (): void => {
    isAwaited = false;
    try {
      history.replaceState(null, "", said);
    } catch {
      // a page that stands in another one has no address of its own
    }
  };
  const onPlace = (fragment: string): void => {
    said = `#${fragment}`;
    if (!isAwaited) requestAnimationFrame(() => setTimeout(say));
    isAwaited = true;
  };
  const viewer = new Viewer(journal, { keysOf: document, onPlace, tools: [theme] }, new AbortController().signal);
  document.body.append(viewer.root);
  viewer.show(location.hash);
  addEventListener("hashchange", ({ newURL }) => {
    const { hash } = new URL(newURL);
    if (hash !== said) viewer.show(hash);
  });
}

paintChosen();
system.addEventListener("change", paintChosen);
addEventListener("beforeprint", paintForPaper);
open().catch((error: unknown) => {
  document.body.append(el("p", "tk-notice", [`This page could not be opened: ${String(error)}`], { role: "alert" }));
});

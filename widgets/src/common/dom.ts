// SPDX-License-Identifier: Apache-2.0
// A few lines instead of a framework.
import { makeFocusable } from "./keyboard.ts";

type Child = Node | string;

/** An element with a class, its children, and attributes. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className = "",
  children: Child[] = [],
  attributes: Record<string, string> = {},
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (className) element.className = className;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** A button; who calls it by what stands on it, as those do who speak to their machine, finds it by its name. */
export function button(label: string, name: string, onClick: () => void, className = "tk-button"): HTMLButtonElement {
  const isNamed = !/^\w/.test(label) || name.toLowerCase().includes(label.toLowerCase());
  const element = el("button", className, [label], { type: "button", "aria-label": isNamed ? name : `${label}: ${name}`, title: name });
  makeFocusable(element);
  element.addEventListener("click", onClick);
  return element;
}

/** A button that is on or off, as `aria-pressed` says. */
export function toggleButton(label: string, name: string, onClick: () => void): HTMLButtonElement {
  const element = button(label, name, onClick, "tk-toggle");
  setPressed(element, false);
  return element;
}

/** Say whether something is on. */
export const setPressed = (toggle: HTMLElement, isOn: boolean): void => toggle.setAttribute("aria-pressed", String(isOn));

export function searchBox(name: string): HTMLInputElement {
  const element = el("input", "tk-search", [], { type: "search", placeholder: name, "aria-label": name, spellcheck: "false" });
  makeFocusable(element);
  return element;
}

/** What belongs together, in one frame. */
export function group(name: string, children: Child[], className = ""): HTMLElement {
  return el("span", `tk-group ${className}`.trim(), children, { role: "group", "aria-label": name });
}

export function milliseconds(value: number): string {
  if (value >= 1000) return `${(value / 1000).toFixed(2)} s`;
  return value >= 100 ? `${value.toFixed(0)} ms` : `${value.toFixed(1)} ms`;
}

export const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;

/** How many lines came and went. */
export const balance = (added: number, removed: number): HTMLElement[] => [
  el("span", "tk-pill tk-added", [`+${added}`]),
  el("span", "tk-pill tk-removed", [`−${removed}`]),
];

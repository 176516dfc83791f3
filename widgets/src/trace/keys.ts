// SPDX-License-Identifier: Apache-2.0
// Keys, each with what it does and the words that explain it. No DOM here.

/** Keys as the help writes them, what they do in words, and what each does; one that says `false` was not for it. */
export type Binding = readonly [keys: string, what: string, ...acts: (() => boolean | void)[]];

/** What the browser calls them. */
const NAMES: Record<string, string> = { "↑": "ArrowUp", "↓": "ArrowDown", "←": "ArrowLeft", "→": "ArrowRight", Esc: "Escape" };

/** Do what a key stands for; whether it stood for anything. Of several keys with one act, each does it. */
export function press(bindings: readonly Binding[], { key, shiftKey }: KeyboardEvent): boolean {
  const act = (shiftKey && actOf(bindings, `Shift+${key}`)) || actOf(bindings, key);
  return act !== undefined && act() !== false;
}

function actOf(bindings: readonly Binding[], key: string): (() => boolean | void) | undefined {
  for (const [keys, , ...acts] of bindings) {
    const at = keys.split(" ").findIndex((name) => (NAMES[name] ?? name) === key);
    if (at >= 0) return acts[at] ?? acts[0];
  }
  return undefined;
}

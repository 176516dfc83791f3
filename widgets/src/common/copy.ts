// SPDX-License-Identifier: Apache-2.0
// To the clipboard, also where a page may not use it directly.
import { focus } from "./keyboard.ts";

/** Copy a text; false: the browser refused. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

function copySelected(text: string): boolean {
  const home = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "tk-spoken";
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  focus(home);
  return isCopied;
}

// SPDX-License-Identifier: Apache-2.0
// The journals that a page holds: chunks of a run that may still go on, or whole ones, packed. No DOM here.
import type { Line } from "../trace/form.ts";
import { Journal } from "../trace/journal.ts";
import { inflated, parsed } from "../trace/packed.ts";

export interface Chunk {
  kind: "j" | "z";
  text: string;
}

/** Read all chunks; one that was cut off with its page says nothing. */
export async function unpacked(chunks: readonly Chunk[]): Promise<Journal> {
  const journal = new Journal();
  for (const { kind, text } of chunks) {
    if (kind === "z") journal.read(await inflated(Uint8Array.from(atob(text), (character) => character.charCodeAt(0))));
    else for (const line of parsed<Line[]>(text) ?? []) journal.add(line);
  }
  return journal;
}

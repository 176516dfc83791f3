// SPDX-License-Identifier: Apache-2.0
// Journals come deflated, to a page as to a notebook, and may be cut off where their process ended. No DOM here.

/** The text that was deflated. */
export async function inflated(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).text();
}

/** What a text says; undefined: it was cut off. */
export function parsed<T>(text: string): T | undefined {
  try {
    return JSON.parse(text) as T;
  } catch {
    return undefined;
  }
}

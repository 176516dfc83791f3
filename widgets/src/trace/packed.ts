// SPDX-License-Identifier: Apache-2.0
// Journals come deflated, to a page as to a notebook. No DOM here.

/** The text that was deflated. */
export async function inflated(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).text();
}

// SPDX-License-Identifier: Apache-2.0
// What a page shows, as the fragment of its address: `#p=17&l=42` opens there again. No DOM here.

export interface Place {
  /** The number of the pass, which counts over all compiles of a run. */
  p?: number;
  /** A line of what it made, from 1. */
  l?: number;
  /** Which run, where the page has several. */
  run?: number;
  /** The pass that it is compared with, of the same run. */
  x?: number;
  /** The two compiles that stand beside each other. */
  ab?: [number, number];
  /** What is looked for. */
  q?: string;
  /** Whether each line says who made it. */
  b?: boolean;
  /** Only this phase is listed. */
  t?: string;
  /** Only this compile is listed. */
  k?: number;
  /** Only steps of this status are listed. */
  s?: string;
  /** How the texts are drawn, as their view says it. */
  d?: string;
  /** That the lines of every language stand beside each other, and which of them is chosen. */
  m?: string;
}

const NUMBERS = ["p", "l", "run", "x", "k"] as const;
const WORDS = ["q", "t", "s", "d", "m"] as const;

export function written(place: Place): string {
  const parts: [string, string][] = [];
  for (const name of NUMBERS) if (place[name] !== undefined) parts.push([name, String(place[name])]);
  if (place.ab) parts.push(["ab", place.ab.join(".")]);
  for (const name of WORDS) if (place[name]) parts.push([name, place[name]]);
  if (place.b) parts.push(["b", "1"]);
  return parts.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
}

/** What a fragment says, with or without its `#`; what it says wrongly it does not say. */
export function read(fragment: string): Place {
  const place: Place = {};
  const said = new Map<string, string>();
  for (const part of fragment.replace(/^#/, "").split("&")) {
    const at = part.indexOf("=");
    if (at > 0) said.set(part.slice(0, at), decoded(part.slice(at + 1)));
  }
  const whole = (text: string | undefined): number | undefined => (text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined);
  for (const name of NUMBERS) {
    const value = whole(said.get(name));
    if (value !== undefined) place[name] = value;
  }
  for (const name of WORDS) {
    const value = said.get(name);
    if (value) place[name] = value;
  }
  const [a, b] = (said.get("ab") ?? "").split(".").map(whole);
  if (a !== undefined && b !== undefined) place.ab = [a, b];
  if (said.get("b") === "1") place.b = true;
  return place;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

// SPDX-License-Identifier: Apache-2.0
// Lines that a person says belong together, from 0, in the order in which they were said. No DOM here.

export interface Pin {
  left: number;
  right: number;
}
export type Pins = readonly Pin[];

const words = ({ left, right }: Pin): string => `${left + 1} ⇄ ${right + 1}`;

/** The pins with one more, or why it cannot be. */
export function withPin(pins: Pins, pin: Pin): Pins | string {
  const same = pins.find(({ left, right }) => left === pin.left || right === pin.right);
  if (same) return `${words(pin)} refused: line ${(same.left === pin.left ? same.left : same.right) + 1} is pinned as ${words(same)}`;
  const crossed = pins.find(({ left, right }) => left < pin.left !== right < pin.right);
  if (crossed) return `${words(pin)} refused: it crosses the pin ${words(crossed)}`;
  return [...pins, pin];
}

/** The pins without the one at a line, else without the last. */
export function withoutPin(pins: Pins, at?: { side: "left" | "right"; line: number }): Pins {
  const index = at ? pins.findIndex((pin) => pin[at.side] === at.line) : -1;
  return pins.filter((_, n) => n !== (index < 0 ? pins.length - 1 : index));
}

export const inOrder = (pins: Pins): Pin[] => [...pins].sort((a, b) => a.left - b.left);

/** For the address of a page: `12-15.40-44`. */
export const pinsToText = (pins: Pins): string => pins.map(({ left, right }) => `${left + 1}-${right + 1}`).join(".");

/** What of such a text fits two texts of so many lines. */
export function pinsFromText(text: string, left: number, right: number): Pins {
  let pins: Pins = [];
  for (const [, old, now] of text.matchAll(/(\d+)-(\d+)/g)) {
    const pin = { left: Number(old) - 1, right: Number(now) - 1 };
    const isThere = pin.left >= 0 && pin.left < left && pin.right >= 0 && pin.right < right;
    const more = isThere ? withPin(pins, pin) : pins;
    if (typeof more !== "string") pins = more;
  }
  return pins;
}

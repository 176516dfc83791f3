// SPDX-License-Identifier: Apache-2.0
// The conversation in which a person pins two lines together: first one on the left, then one on the right. No DOM here.
import { Show } from "./diffalign.ts";
import { type Pin, type Pins, pinsFromText, pinsToText, withoutPin, withPin } from "./diffpins.ts";
import type { Place, Row, Side } from "./difftext.ts";

export interface Answer {
  words: string;
  isRefusal: boolean;
  /** The pin that was set or taken back. */
  pin?: Pin;
}

export class Aligner {
  pins: Pins = [];
  /** The line chosen on the left, once there is one. */
  #chosen: { left?: number } | undefined;

  /** Whether a line is asked for. */
  get isOn(): boolean {
    return this.#chosen !== undefined;
  }

  /** On which side one is asked for. */
  get side(): Side {
    return this.#chosen?.left === undefined ? "left" : "right";
  }

  /** Pins that came with the address of a page. */
  restore(text: string, left: number, right: number): void {
    this.pins = pinsFromText(text, left, right);
    this.#chosen = undefined;
  }

  get text(): string {
    return pinsToText(this.pins);
  }

  /** Begin, or leave again; who is used to press the key between the two lines may do so. */
  press(): Answer {
    if (this.#chosen?.left === undefined) this.#chosen = this.#chosen ? undefined : {};
    return this.#question();
  }

  leave(): void {
    this.#chosen = undefined;
  }

  /** A row was chosen; in two columns a click on the left chooses there again until the pin is set. */
  pick(row: Row, clicked: Side | undefined): Answer {
    const side = clicked === "left" ? "left" : this.side;
    if (row.show === Show.Fold || row[side] < 0) return { words: `there is no line on the ${side} here`, isRefusal: true };
    if (side === "left") {
      this.#chosen = { left: row.left };
      return this.#question();
    }
    const pin = { left: this.#chosen!.left!, right: row.right };
    const pins = withPin(this.pins, pin);
    this.#chosen = undefined;
    if (typeof pins === "string") return { words: pins, isRefusal: true };
    this.pins = pins;
    return { words: `pinned ${pin.left + 1} ⇄ ${pin.right + 1}`, isRefusal: false, pin };
  }

  /** Take back the pin at a place, else the last one. */
  takeBack(at: Place | undefined): Answer {
    const pins = withoutPin(this.pins, at);
    const pin = this.pins.find((one) => !pins.includes(one));
    if (!pin) return { words: "there is no pin", isRefusal: true };
    this.pins = pins;
    return { words: `took back ${pin.left + 1} ⇄ ${pin.right + 1}`, isRefusal: false, pin };
  }

  #question(): Answer {
    if (!this.#chosen) return { words: "", isRefusal: false };
    const { left } = this.#chosen;
    const line = left === undefined ? "the line on the left" : `the line on the right that belongs to ${left + 1}`;
    return { words: `Click ${line}, or ↑ ↓ and Enter; Esc to leave`, isRefusal: false };
  }
}

// SPDX-License-Identifier: Apache-2.0
// What a panel knows of its kernel: whether it is there at all.
import type { AnyModel } from "@anywidget/types";

export const GONE = "kernel gone, run the cell again";

/** Calls that are made once the kernel is gone: at most once, whichever way it was found out. */
export class KernelLine {
  #isGone = false;

  constructor(
    private readonly model: AnyModel,
    private readonly onGone: () => void,
  ) {
    // The model's comm goes when the kernel restarts or ends.
    const model_ = model as unknown as { on(name: string, callback: () => void): void };
    model_.on("comm:close", () => this.#lose());
    model_.on("comm_live_update", () => this.#lose());
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  send(message: unknown): void {
    this.#attempt(() => this.model.send(message));
  }

  save(values: Record<string, unknown>): void {
    for (const [name, value] of Object.entries(values)) this.model.set(name, value);
    this.#attempt(() => this.model.save_changes());
  }

  #attempt(action: () => void): void {
    if (this.#isGone) return;
    try {
      action();
    } catch {
      this.#lose();
    }
  }

  #lose(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.onGone();
  }
}

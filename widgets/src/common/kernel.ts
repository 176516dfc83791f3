// SPDX-License-Identifier: Apache-2.0
// What a panel knows of its kernel: whether it is there at all.
import type { AnyModel } from "@anywidget/types";

export const GONE = "kernel gone, run the cell again";

interface Status {
  connect(listener: (sender: unknown, status: string) => void): void;
  disconnect(listener: (sender: unknown, status: string) => void): void;
}

const ENDS = new Set(["restarting", "autorestarting", "terminating", "dead"]);

/** Whether the model came from a kernel: a notebook that keeps the state of its widgets brings them back without one. */
export function hasKernel(model: AnyModel): boolean {
  // anywidget hands out no model but those that belong to it
  const layout = model.get("layout") as { comm_live?: boolean } | undefined;
  return layout?.comm_live !== false;
}

/** Call when one of some values of a model changes, until the signal says that it is enough. */
export function onChange<T extends object>(model: AnyModel<T>, names: readonly (keyof T & string)[], react: () => void, signal: AbortSignal): void {
  for (const name of names) {
    model.on(`change:${name}`, react);
    signal.addEventListener("abort", () => model.off(`change:${name}`, react));
  }
}

/** The way to the kernel; `onGone` is called once when it is lost, whichever way that was found out. */
export class KernelLine {
  #isGone = false;

  constructor(
    private readonly model: AnyModel,
    private readonly onGone: () => void,
    signal: AbortSignal,
  ) {
    const lose = (): void => this.#lose();
    model.on("comm:close", lose);
    model.on("comm_live_update", lose);
    // JupyterLab's manager also knows its kernel, which may end by itself
    const { kernel } = model.widget_manager as { kernel?: { statusChanged?: Status } };
    const onStatus = (_: unknown, status: string): void => {
      if (ENDS.has(status)) this.#lose();
    };
    kernel?.statusChanged?.connect(onStatus);
    signal.addEventListener("abort", () => kernel?.statusChanged?.disconnect(onStatus));
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

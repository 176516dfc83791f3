// SPDX-License-Identifier: Apache-2.0
// What the compiler said, at the lines of which it said it: an underline, a sign in the gutter, errors also in words.
import { type Diagnostic, setDiagnostics } from "@codemirror/lint";
import { type ChangeDesc, type Extension, RangeSetBuilder, StateEffect, StateField, type Text } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, WidgetType } from "@codemirror/view";

export interface Marker {
  /** From 1; a column of 0 means the whole line, a line of 0 the whole source. */
  line: number;
  column: number;
  severity: "error" | "warning" | "info";
  message: string;
}

/** A marker at a place in the text as it is now. */
export interface Placed extends Marker {
  from: number;
  to: number;
}

/** Find the places: markers speak of the text that was compiled, and the document may have changed since. */
export function place(markers: readonly Marker[], compiled: Text, since: ChangeDesc): Placed[] {
  return markers.map((marker) => {
    const line = compiled.line(Math.min(Math.max(marker.line, 1), compiled.lines));
    const indent = /^\s*/.exec(line.text)![0].length;
    const at = marker.column > 0 ? Math.min(line.from + marker.column - 1, line.to) : line.from + Math.min(indent, line.length);
    const word = marker.column > 0 ? /^[A-Za-z0-9_]+/.exec(line.text.slice(at - line.from)) : null;
    const end = word ? at + word[0].length : line.to;
    return { ...marker, from: since.mapPos(at, -1), to: since.mapPos(Math.max(end, at), 1) };
  });
}

export function showMarkers(view: EditorView, placed: readonly Placed[]): void {
  const length = view.state.doc.length;
  const diagnostics = placed.map(({ from, to, severity, message }): Diagnostic => ({ from, to: Math.min(to, length), severity, message }));
  view.dispatch(setDiagnostics(view.state, diagnostics), { effects: setErrors.of(placed.filter(({ severity }) => severity === "error")) });
}

const setErrors = StateEffect.define<readonly Placed[]>();

class ErrorLine extends WidgetType {
  constructor(private readonly message: string) {
    super();
  }

  override eq(other: ErrorLine): boolean {
    return other.message === this.message;
  }

  override toDOM(): HTMLElement {
    const line = document.createElement("div");
    line.className = "tk-error-line";
    const head = document.createElement("b");
    head.textContent = "error ";
    line.append(head, this.message);
    return line;
  }

  override ignoreEvent(): boolean {
    return false;
  }
}

/** Errors stand in words below their lines. */
export const errorLines: Extension = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(decorations, transaction) {
    let result = decorations.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (!effect.is(setErrors)) continue;
      const builder = new RangeSetBuilder<Decoration>();
      for (const { from, message } of [...effect.value].sort((a, b) => a.from - b.from)) {
        const end = transaction.newDoc.lineAt(from).to;
        builder.add(end, end, Decoration.widget({ widget: new ErrorLine(message), block: true, side: 1 }));
      }
      result = builder.finish();
    }
    return result;
  },
  provide: (field) => EditorView.decorations.from(field),
});

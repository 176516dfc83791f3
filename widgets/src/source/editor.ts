// SPDX-License-Identifier: Apache-2.0
// The editor: CodeMirror for C++, with a bar in the gutter beside each line that is not as it was generated.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { cpp } from "@codemirror/lang-cpp";
import { bracketMatching, foldGutter, foldKeymap, indentOnInput, indentUnit } from "@codemirror/language";
import { lintGutter, lintKeymap } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { ChangeSet, EditorState, Prec, RangeSetBuilder, StateEffect, StateField, type Text, Transaction } from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  GutterMarker,
  gutter,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { hunks } from "../common/textdiff.ts";
import { errorLines, type Marker, type Placed, place, showMarkers } from "./markers.ts";
import { theme } from "./theme.ts";

class EditedMark extends GutterMarker {
  constructor(override readonly elementClass: string) {
    super();
  }
}

const EDITED = new EditedMark("tk-edited-line");
const CUT = new EditedMark("tk-edited-line tk-cut-line");

const setGenerated = StateEffect.define<readonly string[]>();

interface Edits {
  generated: readonly string[];
  marks: ReturnType<RangeSetBuilder<GutterMarker>["finish"]>;
  isEdited: boolean;
}

const edits = StateField.define<Edits>({
  create: (state) => compare([], state.doc),
  update(value, transaction) {
    const given = transaction.effects.find((effect) => effect.is(setGenerated));
    if (!given && !transaction.docChanged) return value;
    return compare(given ? (given.value as readonly string[]) : value.generated, transaction.newDoc);
  },
});

function compare(generated: readonly string[], doc: Text): Edits {
  const found = hunks(generated, doc.toJSON());
  const marks = new RangeSetBuilder<GutterMarker>();
  for (const { added } of found) {
    if (added.start === added.stop) {
      // where lines were only cut, the line that closed up shows it
      const line = doc.line(Math.min(added.start + 1, doc.lines));
      marks.add(line.from, line.from, CUT);
    }
    for (let index = added.start; index < added.stop; index++) {
      const { from } = doc.line(index + 1);
      marks.add(from, from, EDITED);
    }
  }
  return { generated, marks: marks.finish(), isEdited: found.length > 0 };
}

interface Callbacks {
  onCompile(): void;
  onChange(isByPerson: boolean): void;
}

export class Editor {
  readonly view: EditorView;
  #compiled: Text;
  #since: ChangeSet;

  constructor(parent: HTMLElement, text: string, generated: string, label: string, callbacks: Callbacks) {
    const compile = { key: "Mod-Enter", run: () => (callbacks.onCompile(), true), preventDefault: true, stopPropagation: true };
    this.view = new EditorView({
      parent,
      doc: text,
      extensions: [
        Prec.highest(keymap.of([compile])),
        edits,
        lintGutter(),
        lineNumbers(),
        gutter({ class: "tk-edited-gutter", markers: (view) => view.state.field(edits).marks }),
        foldGutter({ openText: "▾", closedText: "▸" }),
        history(),
        drawSelection(),
        indentOnInput(),
        indentUnit.of("  "),
        EditorState.tabSize.of(2),
        bracketMatching(),
        highlightActiveLine(),
        highlightActiveLineGutter(),
        highlightSelectionMatches(),
        search({ top: true }),
        cpp(),
        errorLines,
        theme,
        keymap.of([...searchKeymap, ...historyKeymap, ...foldKeymap, ...lintKeymap, ...defaultKeymap, indentWithTab]),
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false" }),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
          this.#since = this.#since.compose(update.changes);
          callbacks.onChange(update.transactions.some((transaction) => transaction.annotation(Transaction.userEvent) !== undefined));
        }),
      ],
    });
    this.#compiled = this.view.state.doc;
    this.#since = ChangeSet.empty(this.#compiled.length);
    this.generated = generated;
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  /** Replace the text as an edit that can be undone, touching only what differs. */
  set text(text: string) {
    const old = this.text;
    if (text === old) return;
    const shorter = Math.min(text.length, old.length);
    let head = 0;
    while (head < shorter && text[head] === old[head]) head++;
    let tail = 0;
    while (tail < shorter - head && text[text.length - 1 - tail] === old[old.length - 1 - tail]) tail++;
    this.view.dispatch({ changes: { from: head, to: old.length - tail, insert: text.slice(head, text.length - tail) } });
  }

  set generated(text: string) {
    this.view.dispatch({ effects: setGenerated.of(text.split("\n")) });
  }

  get isEdited(): boolean {
    return this.view.state.field(edits).isEdited;
  }

  /** The markers that come next speak of the text as it is now. */
  markCompiled(): void {
    this.#compiled = this.view.state.doc;
    this.#since = ChangeSet.empty(this.#compiled.length);
  }

  show(markers: readonly Marker[]): Placed[] {
    const placed = place(markers, this.#compiled, this.#since);
    showMarkers(this.view, placed);
    return placed;
  }

  /** Scroll to a marker. */
  reveal(marker: Marker): void {
    const [{ from }] = place([marker], this.#compiled, this.#since) as [Placed];
    this.view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
  }

  goTo(marker: Marker): void {
    this.reveal(marker);
    this.view.focus();
  }
}

// SPDX-License-Identifier: Apache-2.0
// Two texts side by side or in one column. Only the rows in view are in the page, so thousands of lines cost no more
// than forty.
import { button, el, plural } from "../common/dom.ts";
import { makeFocusable } from "../common/keyboard.ts";
import { type Language, names } from "../common/syntax.ts";
import { Show } from "./diffalign.ts";
import { type Pin, type Pins, pinsFromText, pinsToText, withoutPin, withPin } from "./diffpins.ts";
import { rowElement } from "./diffrows.ts";
import { Ruler } from "./diffruler.ts";
import { CONTEXTS, DiffText, type Origins, type Place, type Row, type Settings, type Side, type Texts } from "./difftext.ts";
import { nameAt, type ShownLine, Uses } from "./diffuses.ts";

const ROW = 18;
const FOLD_ROW = 24;
const OVERSCAN = 8;
const SIGN = 16;
const GUTTER = 130;
const FIRST: Settings = { layout: "split", context: 3, indents: true, renames: false };

export interface DiffEvents {
  /** A line was clicked or reached by the arrows. */
  onLine(side: Side, line: number): void;
  /** The settings or the pins changed. */
  onChange(): void;
  /** What stands beside a line of the new text was clicked. */
  onBlame(line: number): void;
}

export interface Shown {
  before: readonly string[];
  /** Null where there is but one text. */
  after: readonly string[] | null;
  languages: readonly [before: Language, after: Language];
  labels: readonly [before: string, after: string];
  /** Two languages, which stand beside each other and are not compared. */
  isTranslation: boolean;
  /** Of a translation: for each new line the old one that it was made of. */
  origins?: Origins | undefined;
}

export const DIFF_KEYS: readonly [keys: string, what: string][] = [
  ["n p", "next, previous change"],
  ["↑ ↓", "go by lines"],
  ["← →", "mark the uses of a name in the line, or look aside"],
  ["Enter", "open the fold, follow the moved block"],
  ["e E", "open or close one fold, all folds"],
  ["u", "one column or two"],
  ["w", "show re-indented lines as such"],
  ["r", "fold lines that differ by renaming only"],
  ["F7 a", "align: say which two lines belong together"],
  ["Shift+F7", "take such a pin back"],
];

export class DiffView {
  readonly element: HTMLElement;
  readonly viewport = el("div", "tk-rows", [], { role: "table" });
  readonly #pad = el("div", "tk-rows-pad", [], { role: "rowgroup" });
  readonly #ruler: Ruler;
  readonly #slider = el("div", "tk-slider", [el("div")], { "aria-hidden": "true" });
  readonly #heads = [el("span"), el("span")] as const;
  /** What switches the view, for whoever has a place for it. */
  readonly switches: readonly HTMLElement[];
  readonly keys = DIFF_KEYS;
  readonly #summary = el("span", "tk-diff-summary");
  readonly #message = el("div", "tk-diff-message", [], { role: "status" });
  readonly #toggles: Record<"unified" | "indents" | "renames" | "align", HTMLButtonElement>;
  readonly #context = el("select", "tk-select", [], { "aria-label": "Lines around a change", title: "Lines around a change" });
  readonly #live = new Map<number, HTMLElement>();
  readonly #uses = new Uses();
  #text: DiffText | undefined;
  #pins: Pins = [];
  /** The pins of texts that were shown before, and those that the address of the page came with. */
  readonly #keptPins = new Map<string, string>();
  #givenPins: string | undefined;
  #settings = FIRST;
  #tops: number[] = [0];
  #columns = 0;
  #width = 0;
  #found: { place: Place; needle: string } | undefined;
  #cursor: Place | undefined;
  #name = "";
  /** While a pin is being set: the line chosen on the left, once there is one. */
  #pinning: { left?: number } | undefined;
  #lit: Record<Side, ReadonlySet<number>> = { left: new Set(), right: new Set() };
  #notes: readonly string[] = [];

  constructor(
    signal: AbortSignal,
    private readonly events: DiffEvents,
  ) {
    makeFocusable(this.viewport);
    this.viewport.append(this.#pad);
    this.#ruler = new Ruler((share) => this.#jump(share), signal);
    const toggle = (label: string, name: string, onClick: () => void): HTMLButtonElement => button(label, name, onClick, "tk-toggle");
    this.#toggles = {
      unified: toggle("Unified", "One column (u)", () => this.#toggle("unified")),
      indents: toggle("Indentation apart", "Show lines of which only the indentation differs as such (w)", () => this.#toggle("indents")),
      renames: toggle("Renames apart", "Fold lines that differ by renaming only (r)", () => this.#toggle("renames")),
      align: toggle("Align", "Say which lines belong together (F7 or a; Shift+F7 takes one back)", () => this.#pinKey()),
    };
    makeFocusable(this.#context);
    this.#context.append(...CONTEXTS.map((lines) => el("option", "", [lines === Infinity ? "all lines" : `${lines} around`], { value: String(lines) })));
    this.#context.addEventListener("change", () => this.apply({ context: Number(this.#context.value) }), { signal });
    this.switches = [...Object.values(this.#toggles), this.#context];
    this.element = el("div", "tk-diff", [
      el("div", "tk-heads", [this.#heads[0], el("div", "tk-head", [this.#heads[1], this.#summary])]),
      this.#message,
      el("div", "tk-diff-body", [this.viewport, this.#ruler.element]),
      this.#slider,
    ]);
    this.viewport.addEventListener("scroll", () => this.#paint(), { passive: true, signal });
    this.viewport.addEventListener("wheel", (event) => this.#wheel(event), { passive: false, signal });
    this.viewport.addEventListener("click", (event) => this.#click(event), { signal });
    this.viewport.addEventListener("mousemove", (event) => this.#hover(event), { passive: true, signal });
    this.viewport.addEventListener("mouseleave", () => this.#mark(this.#name), { passive: true, signal });
    this.#slider.addEventListener("scroll", () => this.#slide(), { passive: true, signal });
    const observer = new ResizeObserver(() => this.#resize());
    observer.observe(this.viewport);
    signal.addEventListener("abort", () => {
      observer.disconnect();
      this.#uses.clear();
    });
    this.#dress();
  }

  /** Show two texts, from their first change or from their top; the same ones again as they stand. */
  show({ before, after, languages, labels, isTranslation, origins }: Shown): void {
    const shown = this.#text?.texts;
    const isAgain = shown !== undefined && isEqual(shown.before, before) && isEqual(shown.after, after ?? []) && isEqual(shown.labels, labels);
    if (isAgain && this.#givenPins === undefined && shown.isTranslation === (isTranslation || after === null)) return this.#repaint();
    this.#text = undefined;
    this.#pins = pinsFromText(this.#givenPins ?? this.#keptPins.get(keyOf(labels)) ?? "", before.length, after?.length ?? 0);
    this.#givenPins = this.#found = this.#cursor = this.#pinning = undefined;
    this.#name = "";
    this.#lit = { left: new Set(), right: new Set() };
    this.gutter(null);
    this.#heads.forEach((head, n) => head.replaceChildren(labels[n]!, ...(after === null ? [] : [el("em", "", [n ? "after" : "before"])])));
    this.element.classList.toggle("tk-single", after === null);
    this.viewport.setAttribute("aria-label", labels.filter(Boolean).join(" and "));
    this.#say("");
    this.#compare({ before, after: after ?? [], languages, labels, isTranslation: isTranslation || after === null, origins });
    const [first] = this.#text!.changes();
    this.viewport.scrollTop = first === undefined ? 0 : Math.max(0, this.#tops[first]! - 4 * ROW);
    this.#slider.scrollLeft = 0;
    this.#resize();
  }

  /** Whether the next line that is clicked becomes part of a pin. */
  get isPicking(): boolean {
    return this.#pinning !== undefined;
  }

  get cursor(): Place | undefined {
    return this.#cursor;
  }

  /** How the texts are drawn, for the address of a page: what is not as it is at first, and the pins. */
  get state(): string {
    const { layout, context, indents, renames } = this.#settings;
    const words = [
      ...(layout === "unified" ? ["u"] : []),
      ...(context === FIRST.context ? [] : [`c${context === Infinity ? "all" : context}`]),
      ...(indents ? [] : ["w"]),
      ...(renames ? ["r"] : []),
      ...(this.#pins.length ? [`p${pinsToText(this.#pins)}`] : []),
    ];
    return words.join("_");
  }

  set state(text: string) {
    const words = new Set(text.split("_"));
    const context = CONTEXTS.find((lines) => words.has(`c${lines === Infinity ? "all" : lines}`)) ?? FIRST.context;
    this.#givenPins = [...words].find((word) => word.startsWith("p"))?.slice(1) ?? "";
    this.#set({ layout: words.has("u") ? "unified" : "split", context, indents: !words.has("w"), renames: words.has("r") });
  }

  apply(changes: Partial<Settings>): void {
    this.#set(changes);
    this.events.onChange();
  }

  #set(changes: Partial<Settings>): void {
    const { indents, renames } = this.#settings;
    this.#settings = { ...this.#settings, ...changes };
    this.#dress();
    if (this.#text) {
      const isCompared = indents === this.#settings.indents && renames === this.#settings.renames;
      const { layout, context } = this.#settings;
      this.#staying(() => (isCompared ? this.#text!.arrange(layout, context) : this.#compare(this.#text!.texts)));
    }
  }

  /** Whether a key was for this view, which then did what it stands for. */
  key(key: string, event: KeyboardEvent): boolean {
    if (!this.#text) return false;
    const actions: Record<string, () => void> = {
      n: () => this.change(1),
      p: () => this.change(-1),
      u: () => this.#toggle("unified"),
      w: () => this.#toggle("indents"),
      r: () => this.#toggle("renames"),
      e: () => this.#staying(() => this.#text!.toggle(this.#rowOfCursor())),
      E: () => this.#staying(() => this.#text!.expand(!this.#text!.isExpanded)),
      a: () => this.#pinKey(),
      F7: () => (event.shiftKey ? this.#unpin() : this.#pinKey()),
    };
    if (document.activeElement === this.viewport) {
      actions.ArrowDown = () => this.#step(1);
      actions.ArrowUp = () => this.#step(-1);
      actions.ArrowRight = () => this.#sidestep(1);
      actions.ArrowLeft = () => this.#sidestep(-1);
      actions.Enter = () => this.#enter();
    }
    if (this.#pinning || this.#cursor || this.#name || !this.#message.hidden) actions.Escape = () => this.#escape();
    actions[key]?.();
    return actions[key] !== undefined;
  }

  /** Go to the next or the previous change, as seen from the top of the view. */
  change(direction: 1 | -1): void {
    const here = this.viewport.scrollTop + 4 * ROW;
    const places = (this.#text?.changes() ?? []).map((row) => this.#tops[row]!);
    const place = direction === 1 ? places.find((top) => top > here + 1) : places.reverse().find((top) => top < here - 1);
    if (place !== undefined) this.viewport.scrollTop = Math.max(0, place - 4 * ROW);
  }

  /** Bring a line into view, open what hides it, and put the cursor on it. */
  reveal(side: Side, line: number): void {
    const place = { side, line };
    const row = this.#text?.reveal(place) ?? -1;
    if (row < 0) return;
    this.#layOut();
    this.#cursor = place;
    this.#scrollTo(row);
    this.#resize();
  }

  /** Go to the first, next or previous place where something stands: which of how many it is. */
  find(needle: string, direction: -1 | 0 | 1): { at: number; of: number } {
    const places = this.#text?.find(needle) ?? [];
    const here = this.#found && places.findIndex(({ side, line }) => side === this.#found!.place.side && line === this.#found!.place.line);
    const at = direction === 0 || here === undefined ? 0 : (here + direction + places.length) % Math.max(places.length, 1);
    const place = places[at];
    this.#found = place && { place, needle };
    if (!place) {
      this.#repaint();
      return { at: 0, of: 0 };
    }
    this.reveal(place.side, place.line);
    this.#slideTo(place, needle);
    return { at: at + 1, of: places.length };
  }

  /** Light lines up, as those that another line came from. */
  light(side: Side, lines: Iterable<number>): void {
    this.#lit = { ...this.#lit, [side]: new Set(lines) };
    this.#repaint();
  }

  /** Say something beside each line of the new text, or nothing. */
  gutter(notes: readonly string[] | null): void {
    this.#notes = notes ?? [];
    this.element.classList.toggle("tk-noted", this.#notes.length > 0);
    this.#slide();
    this.#resize();
    this.#repaint();
  }

  slide(characters: number): void {
    this.#slider.scrollLeft += characters * this.#characterWidth();
  }

  // --- settings --------------------------------------------------------------------------------------------------------

  #compare(texts: Texts): void {
    this.#text = new DiffText(texts, this.#settings, this.#pins);
    const { added, removed, moved, indented, renamed } = this.#text.counts;
    const words = [
      ...(moved ? [`${plural(moved, "line")} moved`] : []),
      ...(indented ? [`${plural(indented, "line")} re-indented`] : []),
      ...(renamed ? [`${plural(renamed, "line")} ${renamed === 1 ? "differs" : "differ"} by renaming only`] : []),
      ...(this.#pins.length ? [plural(this.#pins.length, "pin")] : []),
    ];
    const pills = [el("span", "tk-pill tk-added", [`+${added}`]), el("span", "tk-pill tk-removed", [`−${removed}`])];
    this.#summary.replaceChildren(...(words.length ? [...pills, el("span", "tk-dim", [words.join(" · ")])] : []));
    this.#dress();
    this.#layOut();
  }

  #toggle(which: "unified" | "indents" | "renames"): void {
    if (which === "unified") this.apply({ layout: this.#settings.layout === "split" ? "unified" : "split" });
    else this.apply({ [which]: !this.#settings[which] });
  }

  #dress(): void {
    const { layout, context, indents, renames } = this.#settings;
    const isTranslation = this.#text?.texts.isTranslation ?? false;
    const isOn = { unified: layout === "unified", indents, renames, align: this.#pinning !== undefined };
    for (const [name, toggle] of Object.entries(this.#toggles)) {
      toggle.setAttribute("aria-pressed", String(isOn[name as keyof typeof isOn]));
      toggle.disabled = isTranslation;
    }
    this.#context.value = String(context);
    this.#context.disabled = isTranslation;
    this.element.classList.toggle("tk-unified", isOn.unified && !isTranslation);
  }

  #say(message: string, isRefusal = false): void {
    this.#message.textContent = message;
    this.#message.hidden = !message;
    this.#message.classList.toggle("tk-refused", isRefusal);
  }

  // --- pins ------------------------------------------------------------------------------------------------------------

  #pinKey(): void {
    if (this.#text?.texts.isTranslation) return this.#say("there is nothing to align here", true);
    // who is used to press the key between the two lines may do so
    if (this.#pinning?.left === undefined) this.#pinning = this.#pinning ? undefined : {};
    this.#askForLine();
  }

  #askForLine(): void {
    this.viewport.focus({ preventScroll: true });
    this.#dress();
    if (!this.#pinning) return this.#say("");
    const { left } = this.#pinning;
    const where = left === undefined ? "the line on the left" : `the line on the right that belongs to ${left + 1}`;
    this.#say(`Click ${where}, or ↑ ↓ and Enter; Esc to leave`);
    const side = left === undefined ? "left" : "right";
    const row = this.#text!.rows[this.#rowOfCursor()];
    if (row && row.show !== Show.Fold && row[side] >= 0) this.#setCursor({ side, line: row[side] });
  }

  #pick(row: Row, clicked: Side): void {
    const isRechosen = this.#pinning!.left !== undefined && clicked === "left" && this.#settings.layout === "split";
    const side: Side = this.#pinning!.left === undefined || isRechosen ? "left" : "right";
    if (row.show === Show.Fold || row[side] < 0) return this.#say(`there is no line on the ${side} here`, true);
    if (side === "left") {
      this.#pinning = { left: row.left };
      this.#setCursor({ side, line: row.left });
      return this.#askForLine();
    }
    const pin = { left: this.#pinning!.left!, right: row.right };
    const pins = withPin(this.#pins, pin);
    this.#pinning = undefined;
    if (typeof pins === "string") this.#say(pins, true);
    else this.#pinTo(pins, `pinned ${pin.left + 1} ⇄ ${pin.right + 1}`, pin);
    this.#dress();
  }

  #unpin(): void {
    const pins = withoutPin(this.#pins, this.#cursor);
    const gone = this.#pins.find((pin) => !pins.includes(pin));
    if (gone) this.#pinTo(pins, `took back ${gone.left + 1} ⇄ ${gone.right + 1}`, gone);
    else this.#say("there is no pin", true);
  }

  #pinTo(pins: Pins, message: string, { right }: Pin): void {
    this.#pins = pins;
    this.#keptPins.set(keyOf(this.#text!.texts.labels), pinsToText(pins));
    this.#compare(this.#text!.texts);
    this.#say(message);
    this.#goTo({ side: "right", line: right });
    this.events.onChange();
  }

  #escape(): void {
    this.#say("");
    if (this.#pinning) {
      this.#pinning = undefined;
      this.#dress();
      return;
    }
    this.#name = "";
    this.#mark("");
    this.#setCursor(undefined);
  }

  // --- the cursor ------------------------------------------------------------------------------------------------------

  #setCursor(place: Place | undefined): void {
    this.#cursor = place;
    this.#showCursor();
    if (place) this.events.onLine(place.side, place.line);
  }

  #goTo(place: Place): void {
    this.reveal(place.side, place.line);
    this.#setCursor(place);
  }

  #showCursor(): void {
    const row = this.#cursor ? this.#text!.rowOf(this.#cursor) : -1;
    for (const [index, node] of this.#live) {
      if (index === row) node.dataset.cursor = this.#cursor!.side;
      else delete node.dataset.cursor;
    }
  }

  /** The row under the cursor, else the first that is in view. */
  #rowOfCursor(): number {
    const row = this.#cursor ? this.#text!.rowOf(this.#cursor) : -1;
    return row >= 0 ? row : this.#rowAt(this.viewport.scrollTop);
  }

  /** To the next line; a fold on the way opens at the end that is reached. */
  #step(direction: 1 | -1): void {
    const text = this.#text!;
    const wanted = this.#pinning ? (this.#pinning.left === undefined ? "left" : "right") : (this.#cursor?.side ?? "right");
    let index = this.#rowOfCursor() + (this.#cursor ? direction : 0);
    while (text.rows[index] && this.#pinning && text.rows[index]!.show !== Show.Fold && text.rows[index]![wanted] < 0) index += direction;
    const fold = text.rows[index];
    if (fold?.show === Show.Fold) {
      const count = text.rows.length;
      this.#staying(() => text.open(fold, direction === 1 ? "top" : "bottom"));
      if (direction === -1) index += text.rows.length - count;
    }
    const row = text.rows[index];
    if (!row) return;
    const side = row.shows !== "both" ? row.shows : row[wanted] >= 0 ? wanted : wanted === "left" ? "right" : "left";
    this.#setCursor({ side, line: row[side] });
    this.#scrollTo(index);
  }

  /** To the next or the previous name in the line under the cursor, or some columns aside where there is no cursor. */
  #sidestep(direction: 1 | -1): void {
    if (!this.#cursor) return this.slide(8 * direction);
    const found = [...new Set(this.#namesAt(this.#cursor))];
    const at = found.indexOf(this.#name) + direction;
    if (found[at]) {
      this.#name = found[at];
      this.#mark(this.#name);
      return;
    }
    const side = direction === 1 ? "right" : "left";
    const row = this.#text!.rows[this.#rowOfCursor()]!;
    if (side === this.#cursor.side || row[side] < 0 || row.shows !== "both") return;
    this.#name = "";
    this.#mark("");
    this.#setCursor({ side, line: row[side] });
  }

  #namesAt({ side, line }: Place): string[] {
    const { before, after, languages } = this.#text!.texts;
    const [lines, language] = side === "left" ? [before, languages[0]] : [after, languages[1]];
    return names(lines[line]!, language).map(({ text }) => text);
  }

  #enter(): void {
    const index = this.#rowOfCursor();
    const row = this.#text!.rows[index]!;
    if (this.#pinning) return this.#pick(row, this.#cursor?.side ?? "left");
    const move = this.#cursor && this.#text!.moveAt(this.#cursor);
    if (move) this.#followMove(this.#cursor!);
    else this.#staying(() => this.#text!.toggle(index));
  }

  #followMove({ side, line }: Place): void {
    const move = this.#text!.moveAt({ side, line })!;
    const other = side === "left" ? "right" : "left";
    this.#goTo({ side: other, line: move[other] + line - move[side] });
  }

  #click(event: MouseEvent): void {
    const target = event.target as HTMLElement;
    const node = target.closest<HTMLElement>("[data-row]");
    const row = node && this.#text?.rows[Number(node.dataset.row)];
    if (!row) return;
    // the button that was clicked may go with its row
    if (target.closest("button")) this.viewport.focus({ preventScroll: true });
    const link = target.closest<HTMLElement>(".tk-move-link");
    if (link) return this.#goTo({ side: link.dataset.side as Side, line: Number(link.dataset.line) });
    if (target.closest(".tk-note")) return this.events.onBlame(row.right);
    if (row.show === Show.Fold) {
      const end = target.closest<HTMLElement>("[data-end]")?.dataset.end as "top" | "bottom" | undefined;
      this.#text!.open(row, end ?? "all");
      return this.refresh();
    }
    const side = target.closest<HTMLElement>("[data-side]")?.dataset.side as Side | undefined;
    if (!side) return;
    if (this.#pinning) return this.#pick(row, side);
    // who has just marked some text wants to copy it
    if (!getSelection()!.isCollapsed) return;
    const line = this.#lineAt(target);
    this.#name = line ? nameAt(line, event.clientX) : "";
    this.#mark(this.#name);
    this.#setCursor({ side, line: row[side] });
  }

  // --- uses of a name --------------------------------------------------------------------------------------------------

  #hover(event: MouseEvent): void {
    const line = event.buttons ? undefined : this.#lineAt(event.target as HTMLElement);
    this.#mark((line && nameAt(line, event.clientX)) || this.#name);
  }

  #mark(name: string): void {
    if (name === this.#uses.name) return;
    this.#uses.name = name;
    this.#uses.mark(() => this.#shownLines());
  }

  #lineAt(target: HTMLElement): ShownLine | undefined {
    const code = target.closest("code[data-side]")?.querySelector<HTMLElement>(".tk-code");
    return code ? this.#shownLine(code) : undefined;
  }

  #shownLines(): ShownLine[] {
    return [...this.#pad.querySelectorAll<HTMLElement>("code[data-side] > .tk-code")].map((code) => this.#shownLine(code));
  }

  #shownLine(code: HTMLElement): ShownLine {
    const language = this.#text!.texts.languages[code.parentElement!.dataset.side === "left" ? 0 : 1];
    return { code, text: code.textContent!, language };
  }

  // --- painting --------------------------------------------------------------------------------------------------------

  /** Lay the rows out again, after folding. */
  refresh(): void {
    if (!this.#text) return;
    this.#layOut();
    this.#resize();
  }

  #repaint(): void {
    this.#clear();
    this.#paint();
  }

  /** Change the rows, and keep the line at the top of the view, or the one under the cursor, where it is. */
  #staying(change: () => void): void {
    const { scrollTop, clientHeight } = this.viewport;
    const isInView = (index: number): boolean => index >= 0 && this.#tops[index]! >= scrollTop && this.#tops[index]! < scrollTop + clientHeight;
    const own = this.#cursor ? this.#text!.rowOf(this.#cursor) : -1;
    const first = isInView(own) ? own : this.#text!.rows.findIndex(({ show }, index) => index >= this.#rowAt(scrollTop) && show !== Show.Fold);
    const row = this.#text!.rows[first];
    const offset = row ? this.#tops[first]! - scrollTop : 0;
    change();
    this.refresh();
    if (!row) return;
    const side: Side = row.shows === "left" || row.right < 0 ? "left" : "right";
    const now = this.#text!.rowOf({ side, line: row[side] });
    if (now >= 0) this.viewport.scrollTop = this.#tops[now]! - offset;
    this.#paint();
  }

  get #height(): number {
    return this.#tops[this.#tops.length - 1]!;
  }

  #layOut(): void {
    const { rows, texts } = this.#text!;
    this.#tops = [0];
    for (const { show } of rows) this.#tops.push(this.#height + (show === Show.Fold ? FOLD_ROW : ROW));
    this.#clear();
    this.#pad.style.height = `${this.#height}px`;
    this.viewport.setAttribute("aria-rowcount", String(rows.length));
    const longest = (lines: readonly string[]): number => lines.reduce((most, line) => Math.max(most, width(line)), 0);
    this.#columns = Math.max(longest(texts.before), longest(texts.after)) + 2;
    this.element.style.setProperty("--tk-number", `${this.#numberWidth}px`);
  }

  #clear(): void {
    this.#live.clear();
    this.#pad.replaceChildren();
  }

  #rowAt(y: number): number {
    let low = 0;
    let high = this.#tops.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#tops[middle + 1]! <= y) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #paint(): void {
    if (!this.#text) return;
    const { scrollTop, clientHeight } = this.viewport;
    const { rows } = this.#text;
    const first = Math.max(0, this.#rowAt(scrollTop) - OVERSCAN);
    const stop = Math.min(rows.length, this.#rowAt(scrollTop + clientHeight) + OVERSCAN);
    for (const [index, node] of this.#live) {
      if (index >= first && index < stop) continue;
      node.remove();
      this.#live.delete(index);
    }
    const added = document.createDocumentFragment();
    const found = this.#found ? this.#text.rowOf(this.#found.place) : -1;
    for (let index = first; index < stop; index++) {
      if (this.#live.has(index)) continue;
      const node = this.#row(index, rows[index]!, index === found ? this.#found!.needle : "");
      this.#live.set(index, node);
      added.append(node);
    }
    this.#pad.append(added);
    this.#showCursor();
    this.#uses.mark(() => this.#shownLines());
  }

  #row(index: number, row: Row, needle: string): HTMLElement {
    const node = rowElement(row, this.#text!, {
      layout: this.#settings.layout,
      needle,
      isSingle: this.element.classList.contains("tk-single"),
      isPinned: this.#pins.some(({ left, right }) => left === row.left && right === row.right),
      note: this.#notes.length ? (line) => this.#notes[line] ?? "" : undefined,
      isLit: ({ side, line }) => this.#lit[side].has(line),
    });
    node.style.top = `${this.#tops[index]}px`;
    node.setAttribute("aria-rowindex", String(index + 1));
    node.dataset.row = String(index);
    return node;
  }

  #scrollTo(row: number): void {
    const top = this.#tops[row]!;
    const { scrollTop, clientHeight } = this.viewport;
    if (top < scrollTop || top + ROW > scrollTop + clientHeight) this.viewport.scrollTop = top - clientHeight / 2;
  }

  // --- beside the rows -------------------------------------------------------------------------------------------------

  #resize(): void {
    if (!this.#text || !this.viewport.clientWidth) return;
    const missing = Math.max(0, this.#columns * this.#characterWidth() - this.#codeWidth);
    this.#slider.hidden = missing === 0;
    (this.#slider.firstElementChild as HTMLElement).style.width = `calc(100% + ${missing}px)`;
    this.#slide();
    this.#ruler.paint(this.#text, this.#tops, this.viewport.clientHeight);
    this.#paint();
  }

  get #numberWidth(): number {
    const { before, after } = this.#text!.texts;
    return Math.max(38, 10 + 7 * String(Math.max(before.length, after.length)).length);
  }

  get #codeWidth(): number {
    const isUnified = this.element.classList.contains("tk-unified");
    const gutter = this.#notes.length ? GUTTER : 0;
    const { clientWidth } = this.viewport;
    return isUnified ? clientWidth - 2 * this.#numberWidth - SIGN - gutter : clientWidth / 2 - this.#numberWidth - SIGN - gutter;
  }

  #characterWidth(): number {
    if (this.#width) return this.#width;
    const probe = el("span", "tk-probe", ["0".repeat(100)]);
    this.viewport.append(probe);
    this.#width = probe.getBoundingClientRect().width / 100;
    probe.remove();
    return this.#width;
  }

  #slide(): void {
    this.viewport.style.setProperty("--tk-x", `${-this.#slider.scrollLeft}px`);
  }

  #slideTo({ side, line }: Place, needle: string): void {
    const { before, after } = this.#text!.texts;
    const column = Math.max(0, (side === "left" ? before : after)[line]!.toLowerCase().indexOf(needle.toLowerCase()));
    const shown = this.#codeWidth / this.#characterWidth();
    const from = this.#slider.scrollLeft / this.#characterWidth();
    const isVisible = column >= from && column + needle.length <= from + shown;
    if (!isVisible) this.#slider.scrollLeft = (column + needle.length + 4 - shown) * this.#characterWidth();
  }

  #wheel(event: WheelEvent): void {
    const sideways = event.shiftKey ? event.deltaY : event.deltaX;
    if (!sideways || this.#slider.hidden) return;
    this.#slider.scrollLeft += sideways;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) event.preventDefault();
  }

  #jump(share: number): void {
    const shown = Math.max(this.#height, this.viewport.clientHeight);
    this.viewport.scrollTop = share * shown - this.viewport.clientHeight / 2;
  }
}

const isEqual = (a: readonly string[], b: readonly string[]): boolean => a.length === b.length && a.every((item, index) => item === b[index]);
const keyOf = (labels: readonly string[]): string => labels.join("\0");
/** In columns, of which a tab may take four. */
const width = (line: string): number => line.length + (line.includes("\t") ? 3 * (line.split("\t").length - 1) : 0);

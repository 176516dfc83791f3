// SPDX-License-Identifier: Apache-2.0
// The runs, compiles and steps that a journal tells of. No DOM here.
import { plural } from "../common/dom.ts";
import type { Language } from "../common/syntax.ts";
import type { Begin, Codegen, CompileEnd, CompileLine, Copied, End, Failure, Line, Notes, Op, RunLine, TextLine } from "./form.ts";
import { parsed } from "./packed.ts";

/**
 * `changed`, `same`: a pass; `translated`: one language became another; `failed` and `interrupted`: it raised; `aborted`:
 * a step in it did; `unfinished`: the process ended in it.
 */
export type Status = "changed" | "same" | "translated" | "failed" | "interrupted" | "aborted" | "unfinished";

/** What the steps that make one language of another are given. */
const TAKEN: Record<string, Language> = { lower: "tile", codegen: "hidet", ptx: "cuda", sass: "ptx" };

/** Phases of which the result is no text. */
const ASSEMBLED = new Set(["ptxas", "host"]);

/** A phase without the `run2_` of a later compile. */
export const basePhase = (phase: string): string => phase.replace(/^run\d+_/, "");

export class Step {
  end: End | undefined;
  failure: Failure | undefined;
  codegen: Codegen | undefined;
  readonly notes: Notes = new Map();

  constructor(
    readonly compile: Compile,
    readonly begin: Begin,
  ) {}

  get status(): Status {
    if (this.failure) return this.failure.status;
    if (!this.end) return "unfinished";
    if (this.isTranslation || this.#isAssembled) return "translated";
    return this.end.changed ? "changed" : "same";
  }

  /** Whether it has something to say beside that nothing changed. */
  get isEventful(): boolean {
    return this.status !== "same";
  }

  get isBroken(): boolean {
    return this.failure !== undefined || !this.end;
  }

  /** What the pass is called where it stands: a second time it is `name#2`. */
  get name(): string {
    const { name, occurrence } = this.begin;
    return occurrence > 1 ? `${name}#${occurrence}` : name;
  }

  get phase(): string {
    return this.begin.phase;
  }

  get number(): string {
    return String(this.begin.index).padStart(2, "0");
  }

  get language(): Language {
    return this.begin.language;
  }

  get taken(): Language {
    return TAKEN[basePhase(this.phase)] ?? this.language;
  }

  get isTranslation(): boolean {
    return this.taken !== this.language;
  }

  get #isAssembled(): boolean {
    return ASSEMBLED.has(basePhase(this.phase));
  }

  /** The text that it left behind, or what it was given where it left none. */
  get after(): string | null {
    return this.end?.after ?? this.begin.before;
  }

  get ms(): number {
    return (this.end?.ns ?? 0) / 1e6;
  }

  /** Whether it changed a text that is too large to be compared. */
  get isTooLarge(): boolean {
    return this.status === "changed" && this.end!.add === null;
  }

  /** Whether what was compiled is not what was generated. */
  get isEdited(): boolean {
    return this.codegen !== undefined && this.codegen.source !== this.codegen.compiled;
  }

  /** The step before it that made what it was given; undefined: it was given the program as it was written. */
  get giver(): Step | undefined {
    const { steps } = this.compile;
    return steps.slice(0, steps.indexOf(this)).findLast((step) => step.end?.changed && step.end.after === this.begin.before);
  }

  /** For each line before and after it the methods of a person's pass that changed it; null: this is no such pass. */
  get visits(): { before: string[]; after: string[] } | null {
    const told = this.notes.get("visits");
    if (!told) return null;
    const names = (pairs: [number, number][]): string[] => {
      const found: string[] = [];
      for (const [line, method] of pairs) found[line] = [...(found[line] ? [found[line]] : []), told.methods[method]!.name].join(", ");
      return Array.from(found, (name) => name ?? "");
    };
    return { before: names(told.before), after: names(told.after) };
  }

  /** What to compare passes of two compiles by. */
  get key(): string {
    return `${basePhase(this.phase)}/${this.name}`;
  }

  /** What became of it, in words. */
  get words(): string {
    const { end, failure } = this;
    switch (this.status) {
      case "changed":
        return end!.add === null ? "changed" : `${plural(end!.add, "line")} added, ${end!.del} removed`;
      case "same":
        return end!.rebuilt ? "rebuilt, no textual change" : "no change";
      case "translated":
        return this.#isAssembled ? "into machine code" : `into ${LANGUAGES[this.language]}`;
      case "failed":
        return "failed";
      case "interrupted":
        return "interrupted";
      case "aborted":
        return `aborted by ${this.compile.steps.find(({ begin }) => begin.seq === failure!.by)?.number ?? "a step in it"}`;
      case "unfinished":
        return "did not finish (process ended)";
    }
  }
}

export const LANGUAGES: Record<Language, string> = { tile: "Tile IR", hidet: "Hidet IR", cuda: "CUDA C", ptx: "PTX", sass: "SASS" };

export class Compile {
  readonly steps: Step[] = [];
  readonly notes: Notes = new Map();
  end: CompileEnd | undefined;

  constructor(
    readonly run: Run,
    /** Its number among all compiles that are shown. */
    readonly number: number,
    readonly line: CompileLine,
  ) {}

  get name(): string {
    return this.line.run === 0 ? "passes called by hand" : this.line.kernel;
  }

  get status(): string {
    if (this.end) return this.end.status;
    return this.steps.some((step) => step.isBroken) || !this.run.isEnded ? "unfinished" : "";
  }

  /** The time of the whole compile, or of its steps where it has not ended. */
  get ms(): number {
    if (this.end?.ns) return this.end.ns / 1e6;
    return this.steps.filter(({ begin }) => begin.depth === 0).reduce((sum, step) => sum + step.ms, 0);
  }
}

export class Run {
  readonly compiles: Compile[] = [];
  isEnded = false;

  constructor(readonly line: RunLine) {}
}

const NO_RUN: RunLine = { k: "run", schema: 1, version: "", script: "", argv: [], cwd: "", pid: 0, rank: null, started: "" };
const NO_COMPILE = { run: 1, kernel: "", script: "", specialization: "", target: "", device: "", from_cache: false };

export class Journal {
  readonly runs: Run[] = [];
  readonly compiles: Compile[] = [];
  readonly #texts = new Map<string, TextLine>();
  readonly #lines = new Map<string, readonly string[]>();
  /** Those of the run that is being read, by the number that its lines have for them. */
  #open = new Map<number, Compile>();

  /** All steps of all compiles, a compile after the other. */
  get steps(): Step[] {
    return this.compiles.flatMap((compile) => compile.steps);
  }

  /** Take a line of the journal; lines of kinds that are not known tell nothing. */
  add(line: Line): void {
    switch (line.k) {
      case "text":
        this.#texts.set(line.id, line);
        break;
      case "run":
        this.runs.push(new Run(line));
        this.#open = new Map();
        break;
      case "end":
        this.#run.isEnded = true;
        break;
      case "compile":
        this.#begin(line);
        break;
      case "compile_end":
        this.#compile(line.c).end = line;
        break;
      case "pass_begin": {
        const compile = this.#compile(line.c);
        compile.steps.push(new Step(compile, line));
        break;
      }
      case "pass_end":
        this.#with(line, (step) => (step.end = line));
        break;
      case "pass_fail":
        this.#with(line, (step) => (step.failure = line));
        break;
      case "codegen":
        this.#with(line, (step) => (step.codegen = line));
        break;
      case "note":
        if (line.seq === null) this.#compile(line.c).notes.set(line.key, line.value);
        else this.#with({ c: line.c, seq: line.seq }, (step) => step.notes.set(line.key, line.value));
        break;
    }
  }

  /** Take a journal's whole text; what a killed process left of its last line is no line. */
  read(text: string): this {
    const lines = text.split("\n");
    lines.forEach((line, at) => {
      if (!line) return;
      const isLast = at === lines.length - 1;
      const told = isLast ? parsed<Line>(line) : (JSON.parse(line) as Line);
      if (told) this.add(told);
    });
    return this;
  }

  /** The lines of a text; the same array each time, and equal lines of texts that follow each other are the same string. */
  lines(id: string | null): readonly string[] {
    if (id === null) return [];
    const chain: TextLine[] = [];
    let at: string | undefined = id;
    for (; at !== undefined && !this.#lines.has(at); at = chain[chain.length - 1]!.base) {
      const text = this.#texts.get(at);
      if (!text) throw new Error(`the journal has no text ${at}`);
      chain.push(text);
    }
    for (const text of chain.reverse()) this.#lines.set(text.id, this.#decoded(text));
    return this.#lines.get(id)!;
  }

  #decoded({ data, base, ops }: TextLine): readonly string[] {
    if (base === undefined || !ops) return (data ?? "").split("\n");
    const from = this.#lines.get(base)!;
    return ops.flatMap((op) => (isCopied(op) ? from.slice(...op) : op));
  }

  get #run(): Run {
    if (!this.runs.length) this.runs.push(new Run(NO_RUN));
    return this.runs[this.runs.length - 1]!;
  }

  #begin(line: CompileLine): Compile {
    const compile = new Compile(this.#run, this.compiles.length, line);
    this.compiles.push(compile);
    this.#run.compiles.push(compile);
    this.#open.set(line.c, compile);
    return compile;
  }

  #compile(c: number): Compile {
    return this.#open.get(c) ?? this.#begin({ k: "compile", c, ...NO_COMPILE });
  }

  #with(line: { c: number; seq: number }, action: (step: Step) => void): void {
    const step = this.#compile(line.c).steps[line.seq];
    if (step) action(step);
  }
}

const isCopied = (op: Op): op is Copied => typeof op[0] === "number";

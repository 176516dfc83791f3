// SPDX-License-Identifier: Apache-2.0
// The form of a journal: its lines as the tracer writes them, and what is noted in them. No DOM here.
import type { Language } from "../common/syntax.ts";

/** Copies `[from, to)` of the base's lines, or inserts lines. */
export type Op = Copied | string[];
export type Copied = [from: number, to: number];

export interface TextLine {
  k: "text";
  id: string;
  data?: string;
  base?: string;
  ops?: Op[];
}

export interface RunLine {
  k: "run";
  schema: number;
  version: string;
  script: string;
  argv: string[];
  cwd: string;
  /** That of the run, where its journal lies. */
  folder?: string | null;
  pid: number;
  rank: number | null;
  started: string;
}

export interface CompileLine {
  k: "compile";
  c: number;
  run: number;
  kernel: string;
  script: string;
  specialization: string;
  target: string;
  device: string;
  from_cache: boolean;
}

export interface Begin {
  k: "pass_begin";
  c: number;
  seq: number;
  index: number;
  phase: string;
  name: string;
  occurrence: number;
  parent: number | null;
  depth: number;
  before: string | null;
  language: Language;
}

export interface End {
  k: "pass_end";
  c: number;
  seq: number;
  after: string | null;
  changed: boolean;
  rebuilt: boolean;
  ns: number | null;
  self_ns: number | null;
  add: number | null;
  del: number | null;
}

export interface Failure {
  k: "pass_fail";
  c: number;
  seq: number;
  status: "failed" | "interrupted" | "aborted";
  by: number;
  type: string;
  message: string;
  traceback: string;
  where: string | null;
}

export interface Codegen {
  k: "codegen";
  c: number;
  seq: number;
  source: string;
  compiled: string;
  tag: string | null;
  path: string | null;
  messages: string[];
}

interface Note {
  k: "note";
  c: number;
  /** None: of the compile as a whole. */
  seq: number | null;
  key: string;
  value: unknown;
}

/** For each line of `to`, the line of `from` that it comes from. */
export interface LineMap {
  from: string;
  to: string;
  map: readonly (number | null)[];
}

/** The lines of the person: a text, the names of their files, and the number of each line there. */
export interface Cell {
  text: string;
  names: readonly string[];
  numbers: readonly (number | null)[];
}

/** A stage that a compile has not come to. */
export interface Absent {
  stage: string;
  why: string;
  help: string | null;
}

/** What is noted of steps and compiles, by its key. */
export interface Noted {
  absent: Absent;
  cell: Cell;
  custom: { class: string; file: string; line: number };
  error: { type: string; message: string; where: string | null };
  lines: LineMap;
  lines_of_edit: LineMap;
  ptxas: Readonly<Record<string, unknown>>;
  unprintable: { side: string; reason: string };
  visits: Visits;
}

/** Notes by their keys; of others nothing is known. */
export interface Notes {
  get<K extends keyof Noted>(key: K): Noted[K] | undefined;
  has(key: keyof Noted): boolean;
  set(key: string, value: unknown): unknown;
}

/** What a person's pass tells of its methods: for lines before and after, from 0, the number of the one that did it. */
interface Visits {
  methods: { name: string }[];
  before: [line: number, method: number][];
  after: [line: number, method: number][];
}

export interface CompileEnd {
  k: "compile_end";
  c: number;
  status: string;
  ns: number | null;
}

export type Line = TextLine | RunLine | CompileLine | Begin | End | Failure | Codegen | Note | CompileEnd | { k: "end" };

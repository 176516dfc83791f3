// SPDX-License-Identifier: Apache-2.0
// Colors and names for lines of what a kernel becomes, one line at a time: only rows that are on screen are ever colored.

export type Language = "tile" | "hidet" | "cuda" | "ptx" | "sass";
export interface Token {
  start: number;
  stop: number;
  style: string;
}
/** An identifier; one that is `fixed` (an operation, a field, the name of an argument) means what it says, so that a change of it is no renaming. */
export interface Name {
  start: number;
  stop: number;
  text: string;
  isFixed: boolean;
}

interface Grammar {
  /** Its groups: remark, string, number, directive, word. */
  lexeme: RegExp;
  name: RegExp;
  keywords: Set<string>;
  type: RegExp;
  /** Where words of any kind may be an operation, what must stand before it in its line. */
  statement?: RegExp;
}

const STRING = String.raw`("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)`;
const NUMBER = String.raw`(\b0[xX]\w+|\b\d(?:[\w.]|(?<=[eE])[-+])*)`;
const C_REMARK = String.raw`(\/\/.*|\/\*.*?(?:\*\/|$))`;
const WORD = String.raw`([A-Za-z_]\w*)`;
const lexeme = (...groups: string[]): RegExp => new RegExp(groups.join("|"), "g");
const words = (text: string): Set<string> => new Set(text.split(" "));

const IR_KEYWORDS = words(
  "def class return for in while if else elif and or not is pass break continue assert with as lambda declare True False None",
);
const TYPE =
  /^(?:[iufb]\d+(?:e\dm\d)?(?:x\d+)?|bf16|tf32|bool|void|char|short|int|long|float|double|half|unsigned|signed|size_t|u?int\d+(?:_t)?|float\d+|bfloat16|tensor|__half2?|__nv_bfloat16|Global|Shared|Register|Let|Tensor)$/;

const GRAMMARS: Record<Language, Grammar> = {
  tile: { lexeme: lexeme("(#.*)", STRING, NUMBER, String.raw`(@[A-Za-z_]\w*)`, WORD), name: /[A-Za-z_]\w*/g, keywords: IR_KEYWORDS, type: TYPE },
  hidet: {
    // it has its remarks on lines of their own, after `//`
    lexeme: lexeme(String.raw`(#.*|^\s*\/\/.*)`, STRING, NUMBER, String.raw`(@[A-Za-z_]\w*)`, WORD),
    name: /[A-Za-z_]\w*/g,
    keywords: IR_KEYWORDS,
    type: TYPE,
  },
  cuda: {
    lexeme: lexeme(C_REMARK, STRING, NUMBER, String.raw`(^\s*#.*)`, WORD),
    name: /[A-Za-z_]\w*/g,
    keywords: words(
      "if else for while do switch case default return break continue struct template typename using namespace static " +
        "const constexpr extern inline volatile auto true false nullptr sizeof __global__ __device__ __shared__ " +
        "__restrict__ __launch_bounds__ __align__ asm",
    ),
    type: TYPE,
  },
  ptx: {
    lexeme: lexeme(C_REMARK, STRING, String.raw`(\b0[xXfFdD][0-9A-Fa-f]+|\b\d[\w.]*)`, String.raw`((?<![\w$])\.[A-Za-z_]\w*)`, String.raw`([%$A-Za-z_][\w$.]*)`),
    name: /(?<![\w.$])[%$A-Za-z_][\w$]*/g,
    keywords: new Set(),
    type: /^(?:%(?:n?tid|n?ctaid|laneid|n?warpid|n?smid|gridid|lanemask_\w+|clock\w*|pm\d+|envreg\d+|dynamic_smem_size|total_smem_size|globaltimer\w*)(?:\.[xyzw])?|WARP_SZ)$/,
    statement: /^\s*(?:\{\s*)?(?:@!?%\w+\s+)?$/,
  },
  sass: {
    lexeme: lexeme(C_REMARK, STRING, NUMBER, String.raw`((?<![\w$)\]])\.(?!L)[A-Za-z_]\w*)`, String.raw`(\.?[A-Za-z_][\w$.]*)`),
    name: /(?<![\w.$])(?:U?[RP]\d+|B\d+|\.L[\w$]+)\b/g,
    keywords: new Set(),
    type: /^(?:U?RZ|U?PT|SRZ?|SR_[\w.]+)$/,
    statement: /^\s*(?:\/\*\w+\*\/)?\s*\{?\s*(?:@!?U?P\w+\s+)?$/,
  },
};

/** The tokens of a line that have a color; what lies between them has none. */
export function tokens(line: string, language: Language): Token[] {
  const grammar = GRAMMARS[language];
  const found: Token[] = [];
  for (const match of line.matchAll(grammar.lexeme)) {
    const [text, remark, string, number, directive, word] = match;
    const style = remark ? "tk-c" : string ? "tk-s" : number ? "tk-n" : directive ? "tk-m" : styleOf(word!, line, match.index, grammar);
    if (style) found.push({ start: match.index, stop: match.index + text.length, style });
  }
  return found;
}

function styleOf(word: string, line: string, start: number, grammar: Grammar): string {
  if (grammar.keywords.has(word)) return "tk-k";
  if (grammar.type.test(word)) return "tk-t";
  if (grammar.statement) return grammar.statement.test(line.slice(0, start)) && line[start + word.length] !== ":" ? "tk-k" : "";
  return line[start + word.length] === "(" ? "tk-f" : "";
}

/** The names in a line; also those in remarks, in which generated code names what it is made of. */
export function names(line: string, language: Language): Name[] {
  const grammar = GRAMMARS[language];
  const strings = /["']/.test(line) ? tokens(line, language).filter(({ style }) => style === "tk-s") : [];
  const found: Name[] = [];
  for (const match of line.matchAll(grammar.name)) {
    const [text] = match;
    const start = match.index;
    const stop = start + text.length;
    if (grammar.keywords.has(text) || grammar.type.test(text)) continue;
    if (strings.some((string) => string.start <= start && stop <= string.stop)) continue;
    found.push({ start, stop, text, isFixed: isFixed(line, start, stop, grammar) });
  }
  return found;
}

function isFixed(line: string, start: number, stop: number, grammar: Grammar): boolean {
  const next = line[stop];
  if (grammar.statement) return line[stop] !== ":" && grammar.statement.test(line.slice(0, start));
  const isArgument = next === "=" && line[stop + 1] !== "=";
  return next === "(" || isArgument || line[start - 1] === "." || line.startsWith("::", stop) || line.slice(0, start).endsWith("::") || line[start - 1] === "@";
}

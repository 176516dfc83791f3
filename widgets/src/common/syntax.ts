// SPDX-License-Identifier: Apache-2.0
// Colors for lines of tile IR, Hidet IR and CUDA C, one line at a time: only rows that are on screen are ever colored.

export type Language = "ir" | "cuda";
export interface Token {
  start: number;
  stop: number;
  style: string;
}

const KEYWORDS: Record<Language, Set<string>> = {
  ir: new Set(
    ("def class return for in while if else elif and or not is pass break continue assert with as lambda " +
      "declare True False None").split(" "),
  ),
  cuda: new Set(
    ("if else for while do switch case default return break continue struct template typename using namespace static " +
      "const constexpr extern inline volatile auto true false nullptr sizeof __global__ __device__ __shared__ " +
      "__restrict__ __launch_bounds__ __align__ asm").split(" "),
  ),
};
const TYPE =
  /^(?:[iufb]\d+(?:e\dm\d)?(?:x\d+)?|bf16|tf32|bool|void|char|short|int|long|float|double|half|unsigned|signed|size_t|u?int\d+_t|__half2?|__nv_bfloat16|Global|Shared|Register|Let|Tensor)$/;
const LEXEME = {
  ir: /(#.*|^\s*\/\/.*)|("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)|(\b0[xX]\w+|\b\d(?:[\w.]|(?<=[eE])[-+])*)|(@[A-Za-z_]\w*)|([A-Za-z_]\w*)/g, // Hidet IR has its remarks on lines of their own, after `//`
  cuda: /(\/\/.*|\/\*.*?(?:\*\/|$))|("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)|(\b0[xX]\w+|\b\d(?:[\w.]|(?<=[eE])[-+])*)|(^\s*#.*)|([A-Za-z_]\w*)/g,
};

/** The tokens of a line that have a color; what lies between them has none. */
export function tokens(line: string, language: Language): Token[] {
  const found: Token[] = [];
  for (const match of line.matchAll(LEXEME[language])) {
    const [text, comment, string, number, meta, word] = match;
    const style = comment ? "tk-c" : string ? "tk-s" : number ? "tk-n" : meta ? "tk-m" : styleOf(word!, line[match.index + text.length], language);
    if (style) found.push({ start: match.index, stop: match.index + text.length, style });
  }
  return found;
}

function styleOf(word: string, next: string | undefined, language: Language): string {
  if (KEYWORDS[language].has(word)) return "tk-k";
  if (TYPE.test(word)) return "tk-t";
  return next === "(" ? "tk-f" : "";
}

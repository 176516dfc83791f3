# SPDX-License-Identifier: Apache-2.0
"""Every error code and its one-line title: the index that the documentation is printed from.

TK1xx language · TK2xx types and shapes · TK3xx layout · TK4xx code generation · TK5xx toolchain · TK6xx arguments and
launch · TK7xx simulator and runtime · TK8xx notebook · TK9xx configuration and cache.
"""

LANGUAGE: dict[str, str] = {
    "TK101": "only available inside a kernel",
    "TK102": "unknown attribute or name",
    "TK103": "Python that the kernel language does not have",
    "TK104": "wrong arguments in a call",
    "TK105": "name does not exist on every path",
    "TK106": "value must be known at compile time",
    "TK107": "kernel parameter cannot be used",
    "TK108": "launch attribute is missing or wrong",
    "TK109": "host function failed",
    "TK110": "static assertion failed",
    "TK111": "source of a kernel cannot be read",
    "TK112": "return cannot be used here",
    "TK113": "autotune space is not valid",
    "TK114": "rebinding under run-time control flow",
    "TK115": "nested too deeply",
    "TK190": "printed IR cannot be read",
    "TK191": "program is not well formed",
    "TK192": "name is used where it has no value",
    "TK193": "tensor or number is read before it is written",
    "TK194": "instruction does not suit its operands",
    "TK195": "number differs from thread to thread",
    "TK196": "wait for copies never waits",
    "TK197": "tile does not fit in its threads",
}

TYPES_AND_SHAPES: dict[str, str] = {
    "TK201": "unknown type name",
    "TK202": "number does not fit the type",
    "TK203": "type has no whole number of bytes",
    "TK204": "shapes cannot be combined",
    "TK205": "type does not exist in the other library",
    "TK206": "number cannot be made into this type",
    "TK210": "operands of different types",
    "TK211": "operation not defined for this scalar",
    "TK212": "types do not match",
    "TK213": "shapes do not match",
    "TK214": "operation does not exist for this type",
    "TK215": "operand of another kind",
    "TK216": "not part of the scalar language",
    "TK217": "shape of a tile is not constant",
}

LAYOUT: dict[str, str] = {
    "TK301": "layout has another shape",
    "TK302": "tile has no layout yet",
    "TK303": "layout is for another number of threads",
    "TK304": "layout does not exist",
    "TK310": "tiles do not lie where they meet",
}

CODEGEN: dict[str, str] = {
    "TK401": "instruction has no code on this target",
    "TK402": "shared memory does not suffice",
    "TK403": "type has no values in generated code",
    "TK404": "function is missing for these types",
    "TK405": "register index depends on the thread",
    "TK406": "generated code has no such statement",
    "TK407": "call that other threads wait for is left out",
    "TK408": "slice begins inside a digit of a shared layout",
    "TK409": "compiler failed",
    "TK410": "custom pass failed",
    "TK411": "custom pass breaks the program",
    "TK412": "pass cannot be placed",
    "TK413": "step cannot be made a test",
    "TK414": "compile has no such step",
    "TK420": "generated source is empty",
    "TK421": "edited source lacks its kernel",
    "TK422": "edited and generated source have both changed",
    "TK423": "edit cannot be stored",
    "TK430": "journal cannot be read",
    "TK431": "there is no such trace",
    "TK432": "trace has no such step",
    "TK433": "step cannot be run by itself",
    "TK434": "script fails by itself",
}

TOOLCHAIN: dict[str, str] = {
    "TK520": "hidet is missing or has another version",
    "TK501": "source does not compile",
    "TK502": "NVRTC is not installed",
    "TK503": "CUDA headers are not installed",
    "TK504": "compiler does not know the target",
    "TK505": "nvcc is not installed",
    "TK506": "no C++ compiler",
    "TK507": "$CXX does not run",
    "TK508": "edited source has no kernel",
    "TK509": "compiling process died",
    "TK510": "there is no disassembler",
}

ARGUMENTS_AND_LAUNCH: dict[str, str] = {
    "TK620": "grid expression cannot be used",
    "TK621": "grid is out of range",
    "TK622": "argument cannot be a pointer here",
    "TK623": "tensor cannot be passed to a kernel",
    "TK624": "kernel writes a read-only array",
    "TK625": "number does not fit its parameter",
    "TK626": "wrong number of arguments",
    "TK627": "binary is for another GPU",
    "TK628": "GPU refused the launch",
    "TK629": "GPU faulted",
    "TK630": "GPU cannot be used",
    "TK631": "kernel has not been compiled yet",
    "TK632": "script argument is not hashable",
    "TK633": "kernel has no source to edit",
    "TK634": "arguments of the last call are gone",
    "TK635": "kernel cannot be checked here",
    "TK636": "schedules cannot be tuned here",
    "TK637": "tuning results do not hold here",
    "TK638": "package is not installed",
    "TK640": "there is nothing of this name to watch",
    "TK641": "there is no such line, step or block to watch",
    "TK642": "value does not exist there",
    "TK643": "kernel cannot be measured so",
    "TK644": "kernel was compiled for other arguments",
    "TK645": "result differs from that of a peer",
    "TK646": "there is no such line",
}

SIMULATOR_AND_RUNTIME: dict[str, str] = {
    "TK701": "value is used before it is written",
    "TK702": "access outside of a tensor",
    "TK703": "kernel does not end",
    "TK704": "misaligned access",
    "TK705": "shared memory is used after it was freed",
    "TK706": "assumption does not hold",
    "TK707": "clean workspace is not left clean",
    "TK710": "deadlock",
    "TK711": "diverged warp",
    "TK712": "kernel failed",
    "TK713": "access to an invalid address",
    "TK714": "integer division by zero",
    "TK715": "stack overflow",
    "TK716": "kernel was interrupted",
    "TK717": "simulator died",
    "TK718": "simulator cannot load the kernel",
    "TK719": "GPU process died",
    "TK720": "race",
    "TK721": "copy is under way",
    "TK722": "shift by too many bits",
}

NOTEBOOK: dict[str, str] = {
    "TK801": "%%tilus is not on the first line",
    "TK802": "option of a magic cannot be used",
    "TK803": "cell does not define one pass",
    "TK804": "cell does not parse",
}

CONFIGURATION_AND_CACHE: dict[str, str] = {
    "TK901": "unknown option",
    "TK902": "option value cannot be used",
    "TK903": "environment variable cannot be read",
    "TK904": "unknown target",
    "TK905": "tilus itself is loaded",
    "TK911": "cache folder cannot be written",
    "TK912": "manifest is damaged",
    "TK913": "setting of the trace means nothing",
}

TITLES: dict[str, str] = {
    code: title
    for block in (
        LANGUAGE,
        TYPES_AND_SHAPES,
        LAYOUT,
        CODEGEN,
        TOOLCHAIN,
        ARGUMENTS_AND_LAUNCH,
        SIMULATOR_AND_RUNTIME,
        NOTEBOOK,
        CONFIGURATION_AND_CACHE,
    )
    for code, title in block.items()
}

# SPDX-License-Identifier: Apache-2.0
"""Sources that call every function of the headers, written once for CPU, NVRTC and GPU."""

from collections.abc import Iterable

from tests.include.fragments import FRAGMENTS, Fragments
from tilekit.lowir.functions import FUNCTIONS

HEADER = "#include <tk/tk.h>\n\n"

FLOATS = ("float", "double", "half", "nv_bfloat16")
INTEGERS = ("int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t")
SCALARS = (*FLOATS, *INTEGERS, "bool")

UNARY = (*(name for name, function in FUNCTIONS.items() if function.arity == 1 and not function.tests), "erf")
TESTS = tuple(name for name, function in FUNCTIONS.items() if function.tests)
BINARY = ("pow", "minimum", "maximum")
OPERATORS = ("+", "-", "*", "/")
COMPARISONS = ("<", "<=", "==", "!=", ">", ">=")
INTEGER_BINARY = ("add", "sub", "mul", "floordiv", "floormod", "min", "max", "minimum", "maximum")
SHUFFLES = ("shfl_idx", "shfl_up", "shfl_down", "shfl_xor")
EXCHANGED = ("float", "double", "half", "nv_bfloat16", "int8_t", "int16_t", "int32_t", "int64_t", "bool")
VECTOR_BYTES = (1, 2, 4, 8, 16)


def kernel(name: str, params: str, body: Iterable[str]) -> str:
    lines = "\n".join(f"  {line}" for line in body)
    return f'extern "C" __global__ void {name}({params})\n{{\n{lines}\n}}\nTK_KERNEL({name})\n'


def _cases(expressions: Iterable[str]) -> list[str]:
    return [
        "switch (op) {",
        *(f"  case {i}: out[i] = {expression}; break;" for i, expression in enumerate(expressions)),
        "}",
    ]


INDEX = ["int32_t i = blockIdx.x * blockDim.x + threadIdx.x;", "if (i >= n) return;"]


def float_functions(dtype: str) -> str:
    """Kernels unary, tests, binary (functions, then operators), comparisons and fma3 of one type, by operation."""
    one, two = f"int32_t op, int32_t n, {dtype} *x", f"int32_t op, int32_t n, {dtype} *x, {dtype} *y"
    return HEADER + "\n".join(
        [
            kernel("unary", f"{one}, {dtype} *out", [*INDEX, *_cases(f"tk::{name}(x[i])" for name in UNARY)]),
            kernel("tests", f"{one}, bool *out", [*INDEX, *_cases(f"tk::{name}(x[i])" for name in TESTS)]),
            kernel(
                "binary",
                f"{two}, {dtype} *out",
                [
                    *INDEX,
                    *_cases(
                        [*(f"tk::{name}(x[i], y[i])" for name in BINARY), *(f"x[i] {op} y[i]" for op in OPERATORS)]
                    ),
                ],
            ),
            kernel("comparisons", f"{two}, bool *out", [*INDEX, *_cases(f"x[i] {op} y[i]" for op in COMPARISONS)]),
            kernel(
                "fma3",
                f"int32_t n, {dtype} *x, {dtype} *y, {dtype} *z, {dtype} *out",
                [*INDEX, "out[i] = tk::fma(x[i], y[i], z[i]);"],
            ),
        ]
    )


def integer_functions(dtype: str) -> str:
    """Kernels binary, absolute and negated, which widens what it negates, of one integer type."""
    two = f"int32_t op, int32_t n, {dtype} *x, {dtype} *y, {dtype} *out"
    return HEADER + "\n".join(
        [
            kernel("binary", two, [*INDEX, *_cases(f"tk::{name}(x[i], y[i])" for name in INTEGER_BINARY)]),
            kernel("absolute", f"int32_t n, {dtype} *x, {dtype} *out", [*INDEX, "out[i] = tk::abs(x[i]);"]),
            kernel("negated", f"int32_t n, {dtype} *x, int64_t *out", [*INDEX, "out[i] = (int64_t)tk::negate(x[i]);"]),
        ]
    )


def casts(source: str) -> str:
    """Kernels cast_<type>, from one type to every other."""
    return HEADER + "\n".join(
        kernel(f"cast_{to}", f"int32_t n, {source} *x, {to} *out", [*INDEX, f"out[i] = tk::cast<{to}>(x[i]);"])
        for to in SCALARS
    )


def vectors() -> str:
    """Kernels copy_<bytes> and masked_<bytes>: each thread moves a vector, the masked ones where i % 3 is not 0."""

    def mover(name: str, size: int, load: str) -> str:
        body = [
            *INDEX,
            f"uint8_t registers[{size}];",
            load,
            f"for (int32_t k = 0; k < {size}; ++k) registers[k] ^= 1;",
            f"tk::store_global_{size}(out + (int64_t)i * {size}, registers);",
        ]
        return kernel(f"{name}_{size}", "int32_t n, uint8_t *x, uint8_t *out", body)

    return HEADER + "\n".join(
        text
        for size in VECTOR_BYTES
        for text in (
            mover("copy", size, f"tk::load_global_{size}(registers, x + (int64_t)i * {size});"),
            mover(
                "masked",
                size,
                f"tk::load_global_or_zero_{size}(registers, i % 3 ? x + (int64_t)i * {size} : nullptr, i % 3 != 0);",
            ),
        )
    )


def constants() -> str:
    """Kernels constants_<type>: infinity, its negative, and a NaN."""
    return HEADER + "\n".join(
        kernel(
            f"constants_{dtype}",
            f"{dtype} *out",
            [
                "if (threadIdx.x != 0) return;",
                f"out[0] = tk::infinity<{dtype}>();",
                f"out[1] = -tk::infinity<{dtype}>();",
                f"out[2] = tk::nan<{dtype}>();",
            ],
        )
        for dtype in FLOATS
    )


def exchanges(dtype: str) -> str:
    """Kernels of one warp: every shuffle at a distance and width, and the ballot of what is not zero."""
    return HEADER + "\n".join(
        [
            *(
                kernel(
                    name,
                    f"int32_t by, int32_t width, {dtype} *x, {dtype} *out",
                    ["int32_t i = threadIdx.x;", f"out[i] = tk::{name}(x[i], by, width);"],
                )
                for name in SHUFFLES
            ),
            kernel(
                "ballot",
                f"{dtype} *x, uint32_t *out",
                ["out[threadIdx.x] = tk::ballot(tk::cast<bool>(x[threadIdx.x]));"],
            ),
        ]
    )


def barriers() -> str:
    """One block of 128 threads, which must pass each barrier for the next sum to be right."""
    return HEADER + kernel(
        "barriers",
        "int32_t *out",
        [
            "int32_t *shared = tk::shared_ptr<int32_t>(0);",
            "int32_t i = threadIdx.x;",
            "shared[i] = i;",
            "__syncthreads();",
            "int32_t a = shared[127 - i];",
            "__syncthreads();",
            "if (i < 64) {",
            "  shared[i] = a;",
            "  tk::bar_sync(1, 64);",
            "  a += shared[63 - i];",
            "}",
            "a += 1000 * __syncthreads_count(i % 3 == 0);",
            "a += 100000 * __syncthreads_or(i == 77);",
            "a += 1000000 * __syncthreads_and(i != 77);",
            "__syncwarp();",
            "out[i] = a;",
        ],
    )


def shared_vectors() -> str:
    """Kernels shared_<bytes> of one warp: lane i stores its vector at slot[i] and loads the one at slot[31 - i].

    Both are the only access at their line, so `out` and the count of bank conflicts are known.
    """
    return HEADER + "\n".join(
        kernel(
            f"shared_{size}",
            "int32_t *slot, uint8_t *x, uint8_t *out",
            [
                "int32_t i = threadIdx.x;",
                f"uint8_t registers[{size}];",
                f"uint8_t *mine = tk::shared_ptr<uint8_t>(slot[i] * {size});",
                f"uint8_t *other = tk::shared_ptr<uint8_t>(slot[31 - i] * {size});",
                f"tk::load_global_{size}(registers, x + i * {size});",
                f"tk::store_shared_{size}(mine, registers);",
                "__syncthreads();",
                f"tk::load_shared_{size}(registers, other);",
                f"tk::store_global_{size}(out + i * {size}, registers);",
            ],
        )
        for size in VECTOR_BYTES
    )


def matrix_loads() -> str:
    """Kernels ldmatrix_<form> of one warp: `x` fills shared memory, lane i brings row address `rows[i]` (elements)."""
    return HEADER + "\n".join(
        kernel(
            f"ldmatrix_{form}",
            "int32_t *rows, uint16_t *x, uint32_t *out",
            [
                "uint16_t *shared = tk::shared_ptr<uint16_t>(0);",
                "int32_t lane = threadIdx.x;",
                f"for (int32_t i = lane; i < {MATRIX_ELEMENTS}; i += 32) shared[i] = x[i];",
                "__syncthreads();",
                f"uint32_t registers[{count}];",
                f"tk::ldmatrix_{form}(registers, shared + rows[lane]);",
                "#pragma unroll",
                f"for (int32_t q = 0; q < {count}; ++q) out[q * 32 + lane] = registers[q];",
            ],
        )
        for form, count in MATRIX_FORMS.items()
    )


def matrix_stores() -> str:
    """Kernels stmatrix_<form>, the other way: registers `x` go to the rows of shared memory, which becomes `out`."""
    return HEADER + "\n".join(
        kernel(
            f"stmatrix_{form}",
            "int32_t *rows, uint32_t *x, uint16_t *out",
            [
                "uint16_t *shared = tk::shared_ptr<uint16_t>(0);",
                "int32_t lane = threadIdx.x;",
                f"for (int32_t i = lane; i < {MATRIX_ELEMENTS}; i += 32) shared[i] = 0;",
                "__syncthreads();",
                f"uint32_t registers[{count}];",
                "#pragma unroll",
                f"for (int32_t q = 0; q < {count}; ++q) registers[q] = x[q * 32 + lane];",
                f"tk::stmatrix_{form}(shared + rows[lane], registers);",
                "__syncthreads();",
                f"for (int32_t i = lane; i < {MATRIX_ELEMENTS}; i += 32) out[i] = shared[i];",
            ],
        )
        for form, count in MATRIX_FORMS.items()
    )


MATRIX_ELEMENTS = 1024
MATRIX_FORMS = {f"x{count}{trans}": count for trans in ("", "_trans") for count in (1, 2, 4)}


def _registers(name: str, dtype: str, count: int) -> list[str]:
    """An array of registers, filled from what a lane owns of a parameter of the same name."""
    return [
        f"{dtype} {name}_registers[{count}];",
        "#pragma unroll",
        f"for (int32_t i = 0; i < {count}; ++i) {name}_registers[i] = {name}[threadIdx.x * {count} + i];",
    ]


def _multiplier(name: str, fragments: Fragments, counts: tuple[int, int, int], call: str) -> str:
    """A kernel of one warp: the registers of a, b and d come in lane by lane, and those of d go out."""
    (a, b, d), f = counts, fragments
    return kernel(
        name,
        f"{f.operand} *a, {f.operand} *b, {f.accumulator} *d",
        [
            *_registers("a", f.operand, a),
            *_registers("b", f.operand, b),
            *_registers("d", f.accumulator, d),
            call,
            "#pragma unroll",
            f"for (int32_t i = 0; i < {d}; ++i) d[threadIdx.x * {d} + i] = d_registers[i];",
        ],
    )


def multiplications(name: str) -> str:
    """Kernels of one kind of mma: one instruction, a tile of 3 x 5 x 2, one of 5 x 9 x 1, and one whose registers of a
    fragment lie apart, as in a layout that takes k in vectors of two instructions."""
    f = FRAGMENTS[name]
    parts = [
        _multiplier("one", f, (f.a, f.b, f.d), f"tk::mma_{name}(d_registers, a_registers, b_registers, d_registers);")
    ]
    for kernel_name, tile in f.tiles().items():
        numbers = ", ".join(map(str, tile.numbers))
        call = f"tk::mma_tile_{name}<{numbers}>(d_registers, a_registers, b_registers);"
        parts.append(_multiplier(kernel_name, f, tile.register_counts(f), call))
    return HEADER + "\n".join(parts)


def copies() -> str:
    """Kernels of 64 threads named after each form: thread i copies its vector to slot 63 - i in two groups."""

    def copier(form: str, size: int, mask: str) -> str:
        return kernel(
            form,
            "uint8_t *x, uint8_t *out",
            [
                "int32_t i = threadIdx.x;",
                "uint8_t *shared = tk::shared_ptr<uint8_t>(0);",
                f"uint8_t *to = shared + (63 - i) * {size};",
                f"tk::{form}(to, x + i * {size}{mask});",
                "tk::cp_async_commit_group();",
                f"tk::{form}(to + 64 * {size}, x + (64 + i) * {size}{mask});",
                "tk::cp_async_commit_group();",
                "tk::cp_async_wait_group<1>();",
                "__syncthreads();",
                f"uint8_t registers[{size}];",
                f"tk::load_shared_{size}(registers, shared + i * {size});",
                f"tk::store_global_{size}(out + i * {size}, registers);",
                "tk::cp_async_wait_all();",
                "__syncthreads();",
                f"tk::load_shared_{size}(registers, shared + (64 + i) * {size});",
                f"tk::store_global_{size}(out + (64 + i) * {size}, registers);",
            ],
        )

    return HEADER + "\n".join(
        copier(f"cp_async_{masked}{size}{hint}", size, ", i % 3 != 0" if masked else "")
        for hint in ("", "_evict_first")
        for masked in ("", "or_zero_")
        for size in COPY_BYTES
    )


COPY_BYTES = (4, 8, 16)


def semaphores() -> str:
    """Blocks take turns: block i is the turn[i]-th to change every x, in a way that tells the order."""
    return HEADER + kernel(
        "turns",
        "int32_t *turn, int32_t *semaphore, uint32_t *x",
        [
            "int32_t mine = turn[blockIdx.x];",
            "tk::lock_semaphore(semaphore, mine);",
            "x[threadIdx.x] = x[threadIdx.x] * 3 + blockIdx.x;",
            "tk::release_semaphore(semaphore, mine + 1);",
        ],
    )


def everything() -> dict[str, str]:
    """Every source by a name for messages."""
    return {
        **{f"float functions of {dtype}": float_functions(dtype) for dtype in FLOATS},
        **{f"integer functions of {dtype}": integer_functions(dtype) for dtype in INTEGERS},
        **{f"casts from {dtype}": casts(dtype) for dtype in SCALARS},
        **{f"exchanges of {dtype}": exchanges(dtype) for dtype in EXCHANGED},
        "vectors": vectors(),
        "constants": constants(),
        "barriers": barriers(),
        "shared vectors": shared_vectors(),
        "matrix loads": matrix_loads(),
        "matrix stores": matrix_stores(),
        **{f"mma {name}": multiplications(name) for name in FRAGMENTS},
        "copies": copies(),
        "semaphores": semaphores(),
    }


# The first target that has what a source uses, where it is not the first of all.
FIRST_TARGET = {"matrix stores": "sm_90"}

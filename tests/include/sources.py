# SPDX-License-Identifier: Apache-2.0
"""Sources that call every function of the headers, written once for CPU, NVRTC and GPU."""

from collections.abc import Iterable

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
    """Kernels binary and absolute of one integer type."""
    two = f"int32_t op, int32_t n, {dtype} *x, {dtype} *y, {dtype} *out"
    return HEADER + "\n".join(
        [
            kernel("binary", two, [*INDEX, *_cases(f"tk::{name}(x[i], y[i])" for name in INTEGER_BINARY)]),
            kernel("absolute", f"int32_t n, {dtype} *x, {dtype} *out", [*INDEX, "out[i] = tk::abs(x[i]);"]),
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
    }

# SPDX-License-Identifier: Apache-2.0
"""Every error code and its one-line title: the index that the documentation is printed from.

TK1xx language · TK2xx types and shapes · TK3xx layout · TK4xx code generation · TK5xx toolchain · TK6xx arguments and
launch · TK7xx simulator and runtime · TK8xx notebook · TK9xx configuration and cache.
"""

LANGUAGE: dict[str, str] = {}

TYPES_AND_SHAPES: dict[str, str] = {
    "TK201": "unknown type name",
    "TK202": "number does not fit the type",
    "TK203": "type has no whole number of bytes",
    "TK204": "shapes do not match",
    "TK205": "type does not exist in the other library",
    "TK206": "number cannot be made into this type",
}

LAYOUT: dict[str, str] = {}

CODEGEN: dict[str, str] = {}

TOOLCHAIN: dict[str, str] = {}

ARGUMENTS_AND_LAUNCH: dict[str, str] = {}

SIMULATOR_AND_RUNTIME: dict[str, str] = {}

NOTEBOOK: dict[str, str] = {}

CONFIGURATION_AND_CACHE: dict[str, str] = {
    "TK901": "unknown option",
    "TK902": "option value cannot be used",
    "TK903": "environment variable cannot be read",
    "TK904": "unknown target",
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

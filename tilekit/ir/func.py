# SPDX-License-Identifier: Apache-2.0
"""A function of the tile IR: one kernel with its parameters, its body and its launch facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilekit.ir.node import Node
from tilekit.ir.stmt import Stmt
from tilekit.lowir.scalar import Expr, Var


@dataclass(frozen=True, eq=False)
class Analysis:
    """What is known of scalar variables: a divisor of each, and inclusive bounds where there are any."""

    divisibility: Mapping[Var, int] = field(default_factory=dict[Var, int])
    lower_bound: Mapping[Var, int] = field(default_factory=dict[Var, int])
    upper_bound: Mapping[Var, int] = field(default_factory=dict[Var, int])


@dataclass(frozen=True, eq=False)
class Metadata:
    """Launch facts of a kernel: the grid in expressions over parameters, threads, and what callers guarantee.

    `param2divisibility` gives a divisor of each integer parameter, and for each pointer the alignment of its address
    in bytes.
    """

    grid_blocks: tuple[Expr, Expr, Expr]
    cluster_blocks: tuple[int, int, int]
    block_indices: tuple[Var, Var, Var]
    num_warps: int
    param2divisibility: Mapping[Var, int] = field(default_factory=dict[Var, int])
    analysis: Analysis | None = None

    @staticmethod
    def create(
        grid_blocks: Sequence[Expr],
        cluster_blocks: Sequence[int],
        block_indices: Sequence[Var],
        num_warps: int,
        param2divisibility: Mapping[Var, int] | None = None,
        analysis: Analysis | None = None,
    ) -> Metadata:
        x, y, z = grid_blocks
        cx, cy, cz = cluster_blocks
        bx, by, bz = block_indices
        return Metadata((x, y, z), (cx, cy, cz), (bx, by, bz), num_warps, dict(param2divisibility or {}), analysis)

    @property
    def num_threads(self) -> int:
        return 32 * self.num_warps


@dataclass(frozen=True, eq=False)
class Function(Node):
    """A kernel: `name(params)` with a body and metadata."""

    name: str
    params: tuple[Var, ...]
    body: Stmt
    metadata: Metadata

    @staticmethod
    def create(name: str, params: Sequence[Var], body: Stmt, metadata: Metadata) -> Function:
        return Function(name, tuple(params), body, metadata)

    def with_body(self, body: Stmt) -> Function:
        return self.replace(body=body)

    def with_metadata(self, metadata: Metadata) -> Function:
        return self.replace(metadata=metadata)

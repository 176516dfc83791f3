# SPDX-License-Identifier: Apache-2.0
"""Visitors and rewriters over the tile IR."""

from tilekit.ir.functors.functor import IRFunctor, IRRewriter, IRVisitor, watched_by

__all__ = ["IRFunctor", "IRRewriter", "IRVisitor", "watched_by"]

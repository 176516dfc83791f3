# SPDX-License-Identifier: Apache-2.0
"""What is known of scalars and of memory accesses before a kernel runs: asked by layout rules, passes and emitters."""

from tilekit.ir.analysis.grid_analysis import axis_pattern, vector_width, vector_widths
from tilekit.ir.analysis.scalar_analysis import Fact, Facts, analyze, bounds, divisor

__all__ = ["Fact", "Facts", "analyze", "axis_pattern", "bounds", "divisor", "vector_width", "vector_widths"]

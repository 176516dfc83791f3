# SPDX-License-Identifier: Apache-2.0
"""Writes down in a function what is known of its scalar variables."""

from __future__ import annotations

from dataclasses import replace

from tilekit.ir.analysis.scalar_analysis import analyze
from tilekit.ir.func import Analysis, Function
from tilekit.transforms.base import Pass


class AnalyzeScalarPass(Pass):
    """Sets `metadata.analysis`; a function that already says the same is left alone."""

    def process_function(self, func: Function) -> Function:
        found, known = analyze(func), func.metadata.analysis
        if known is not None and _equal(found, known):
            return func
        return func.with_metadata(replace(func.metadata, analysis=found))


def analyze_scalar_pass() -> Pass:
    return AnalyzeScalarPass()


def _equal(a: Analysis, b: Analysis) -> bool:
    return (dict(a.divisibility), dict(a.lower_bound), dict(a.upper_bound)) == (
        dict(b.divisibility),
        dict(b.lower_bound),
        dict(b.upper_bound),
    )

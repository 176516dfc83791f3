# SPDX-License-Identifier: Apache-2.0
"""Passes over the tile IR, one a file, and the pipeline as one page.

Not here, because nothing needs it: hoisting of expressions over parameters alone. The grid is made of parameters
already, and the compilers behind `source.cu` move the rest.
"""

from tilekit.transforms.analyze_scalar import analyze_scalar_pass
from tilekit.transforms.base import Pass, run_passes
from tilekit.transforms.bound_aware_simplify import bound_aware_simplify_pass
from tilekit.transforms.copy_elimination import copy_elimination_pass
from tilekit.transforms.custom import Pipeline, after, before, replace, without
from tilekit.transforms.dead_code_elimination import dead_code_elimination_pass
from tilekit.transforms.declare_to_let import declare_to_let_pass
from tilekit.transforms.layout_inference import layout_inference_pass
from tilekit.transforms.let_propagation import let_propagation_pass
from tilekit.transforms.lower_assume import lower_assume_pass
from tilekit.transforms.lower_load_store import lower_load_store_pass


def get_default_passes() -> list[Pass]:
    """The tile passes of a compile, in their order."""
    return [
        # names that are bound once say what they are, also to the analysis of the others
        declare_to_let_pass(),
        let_propagation_pass(),
        # what a person knows of the parameters is known to every analysis
        lower_assume_pass(),
        # copies and dead tiles go before layouts are chosen, so that they have no say in them
        copy_elimination_pass(),
        dead_code_elimination_pass(),
        # layouts follow alignment: how many bytes of a row lie side by side at once
        analyze_scalar_pass(),
        layout_inference_pass(),
        # a mask becomes visible when a load becomes generic; then bounds take it apart
        lower_load_store_pass(),
        bound_aware_simplify_pass(),
        # branches are gone that the first analysis still had to think possible
        analyze_scalar_pass(),
        # views have no readers left, and neither have the scalars that only masks asked for
        dead_code_elimination_pass(),
    ]


__all__ = [
    "Pass",
    "Pipeline",
    "after",
    "analyze_scalar_pass",
    "before",
    "bound_aware_simplify_pass",
    "copy_elimination_pass",
    "dead_code_elimination_pass",
    "declare_to_let_pass",
    "get_default_passes",
    "layout_inference_pass",
    "let_propagation_pass",
    "lower_assume_pass",
    "lower_load_store_pass",
    "replace",
    "run_passes",
    "without",
]

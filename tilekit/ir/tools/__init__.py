# SPDX-License-Identifier: Apache-2.0
"""Small tools over the IR: collect, rewrite, compare, verify."""

from tilekit.ir.tools.instruction_collector import collect, collect_instructions
from tilekit.ir.tools.rewriter import rewrite
from tilekit.ir.tools.verifier import verify

__all__ = ["collect", "collect_instructions", "rewrite", "verify"]

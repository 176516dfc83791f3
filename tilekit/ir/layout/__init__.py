# SPDX-License-Identifier: Apache-2.0
"""Layouts: which thread holds which element of a tile, and where; pure mathematics that knows no instruction."""

from tilekit.ir.layout.register_layout import LayoutOperationError, RegisterLayout

__all__ = ["LayoutOperationError", "RegisterLayout"]

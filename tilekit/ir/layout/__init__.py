# SPDX-License-Identifier: Apache-2.0
"""Layouts: which thread holds which element of a tile, and where it lies; mathematics that knows no instruction."""

from tilekit.ir.layout.register_layout import LayoutOperationError, RegisterLayout
from tilekit.ir.layout.shared_layout import SharedLayout, Swizzle

__all__ = ["LayoutOperationError", "RegisterLayout", "SharedLayout", "Swizzle"]

# SPDX-License-Identifier: Apache-2.0
"""Where and why: spans, diagnostics, the error classes, and their rendering as text, ANSI and HTML."""

from tilekit.diag.diagnostic import Diagnostic
from tilekit.diag.errors import (
    ArgumentError,
    CacheError,
    CodegenError,
    ConfigError,
    KernelError,
    LanguageError,
    LaunchError,
    LayoutError,
    PassError,
    TilekitError,
    ToolchainError,
    VerificationError,
)
from tilekit.diag.sources import Located, Location, Locator, Sources
from tilekit.diag.span import Span
from tilekit.diag.suggestion import suggest

__all__ = [
    "ArgumentError",
    "CacheError",
    "CodegenError",
    "ConfigError",
    "Diagnostic",
    "KernelError",
    "LanguageError",
    "LaunchError",
    "LayoutError",
    "Located",
    "Location",
    "Locator",
    "PassError",
    "Sources",
    "Span",
    "TilekitError",
    "ToolchainError",
    "VerificationError",
    "suggest",
]

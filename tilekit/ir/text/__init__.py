# SPDX-License-Identifier: Apache-2.0
"""Tile IR as text that `ast` parses: a printer, and a parser that reads back what it prints."""

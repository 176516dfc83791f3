# SPDX-License-Identifier: Apache-2.0
"""A tuning as a plot that grows while it runs; what stays in the cell is a copy that a saved notebook paints again.

A front end draws one live figure well and many badly, and keeps none of them without a kernel. So there is one for each
tuning, it is closed when that ends, and its place is taken by the copy.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from IPython.display import display

from tilekit.jit import observer
from tilekit.jit.progress import TuningProgress, Underway
from tilekit.notebook.running import can_update

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_REDRAW_S = 0.25


class TuningPlots(observer.Observer):
    """Watches every tuning, in whichever cell it runs."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._plot: LivePlot | None = None

    def running(self, progress: Underway | None) -> None:
        if progress is None:
            self._end()
        elif isinstance(progress, TuningProgress) and progress.best is not None and self._is_live:
            if self._plot is None:
                self._plot = LivePlot(progress)
            self._plot.update(progress)

    @property
    def _is_live(self) -> bool:
        return hasattr(self._shell, "kernel") and can_update(self._shell)

    def _end(self) -> None:
        if self._plot is not None:
            self._plot.close()
            self._plot = None


class LivePlot:
    """The figure of one tuning."""

    def __init__(self, progress: TuningProgress) -> None:
        # plotly takes a second to load, and only who waits for a tuning needs it
        from plotly.graph_objects import FigureWidget

        from tilekit.jit.tuning import figure

        self._figure = figure
        self._table = progress.table
        self._drawn = time.monotonic()
        self.widget: Any = FigureWidget(figure.figure(progress.table))
        view = self.widget._repr_mimebundle_()
        bundle: dict[str, Any] = view[0] if isinstance(view, tuple) else view
        self._handle: Any = display({**bundle, "text/plain": str(progress.table)}, raw=True, display_id=True)

    def update(self, progress: TuningProgress) -> None:
        """Redraw, but not so often that the front end falls behind."""
        self._table = progress.table
        if time.monotonic() - self._drawn < _REDRAW_S:
            return
        self._drawn = time.monotonic()
        with self.widget.batch_update():
            self._figure.update(self.widget, progress.table)

    def close(self) -> None:
        """Leave the copy in its place."""
        bundle = self._figure.mimebundle(self._table)
        self.widget.close()
        self._handle.update(bundle, raw=True)

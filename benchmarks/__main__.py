# SPDX-License-Identifier: Apache-2.0
"""`python -m benchmarks [name ...]`: measure everything, or the named figures, and keep the result."""

from __future__ import annotations

import json
import sys

from benchmarks import budgets, report
from tilekit.runtime import device


def main(names: list[str]) -> int:
    figures = dict(budgets.BUDGETS)
    if device.survey().gpus:
        from benchmarks import kernels, tensor_cores, tk_functions

        figures["kernels"] = kernels.measure
        figures["tensor_cores"] = tensor_cores.measure
        figures["tk_functions"] = tk_functions.measure
    unknown = sorted(set(names) - set(figures))
    if unknown:
        print(f"there is no figure {unknown[0]}: choose from {', '.join(figures)}", file=sys.stderr)
        return 2
    found: dict[str, object] = {}
    for name in names or figures:
        found[name] = figures[name]()
        print(f"{name}: {json.dumps(found[name], indent=2)}", flush=True)
    print(f"kept in {report.write(found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

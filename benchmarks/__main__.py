# SPDX-License-Identifier: Apache-2.0
"""`python -m benchmarks [name ...]`: measure everything, or the named figures, and keep the result.

`python -m benchmarks peers [--only matmul,attention] [--seconds 480]` takes options of its own.
"""

from __future__ import annotations

import json
import sys

from benchmarks import budgets, peers, report
from tilekit.runtime import device


def main(names: list[str]) -> int:
    has_gpu = bool(device.survey().gpus)
    if names[:1] == ["peers"]:
        if has_gpu:
            return peers.main(names[1:])
        print("peers are measured on a GPU, and there is none here", file=sys.stderr)
        return 2
    figures = dict(budgets.BUDGETS)
    if has_gpu:
        from benchmarks import kernels, launch, tensor_cores, tk_functions, tuning

        figures["kernels"] = kernels.measure
        figures["launch"] = launch.measure
        figures["tensor_cores"] = tensor_cores.measure
        figures["tk_functions"] = tk_functions.measure
        figures["tuning"] = tuning.measure
    unknown = sorted(set(names) - set(figures))
    if unknown:
        print(f"there is no figure {unknown[0]}: choose from {', '.join(figures)}", file=sys.stderr)
        return 2
    found: dict[str, object] = {}
    for name in names or figures:
        found[name] = figures[name]()
        print(f"{name}: {json.dumps(found[name], indent=2)}", flush=True)
    print(f"kept in {report.write(found)}")
    return peers.main([]) if has_gpu and not names else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

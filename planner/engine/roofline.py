"""The roofline: work takes as long as its bytes or its FLOPs, whichever is longer.

Bandwidths and FLOP rates are datasheet peaks times a measured share; a share above 1 is physically
impossible and is refused (``check_share``), because public kernel tables contain such points.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from planner.engine.hardware import Accelerator
from planner.engine.model_arch import ModelArch
from planner.engine.quantization import WeightFormat, compute_format, resolve_format

FloatArray = NDArray[np.float64]


def check_share(name: str, share: float) -> float:
    """A share of a datasheet peak, refused outside (0, 1].

    >>> check_share("weight_bandwidth", 0.87)
    0.87
    """
    if not 0 < share <= 1:
        raise ValueError(f"{name}: {share} of the datasheet peak is physically impossible")
    return share


def peak_flops_table(arch: ModelArch, accelerators: Sequence[Accelerator], formats: Sequence[str]) -> FloatArray:
    """Dense FLOP/s of matrix multiplications, accelerators x weight formats; NaN where no path exists."""
    recipes: list[WeightFormat] = [resolve_format(arch, name) for name in formats]
    table = np.full((len(accelerators), len(recipes)), np.nan)
    for row, accelerator in enumerate(accelerators):
        for column, recipe in enumerate(recipes):
            compute = compute_format(recipe, accelerator.peak_flops)
            if compute is not None:
                table[row, column] = accelerator.peak_flops[compute]
    return table


def half_precision_flops(accelerator: Accelerator) -> float:
    """Dense 16-bit FLOP/s: what attention runs at whatever the weights; NaN where unknown."""
    for name in ("bf16", "fp16", "tf32", "fp32"):
        if name in accelerator.peak_flops:
            return accelerator.peak_flops[name]
    return float("nan")

"""Loading (or compiling, once for each installation) the event loop before anything is timed."""

from __future__ import annotations

import numpy as np

from planner.engine.simulate.run import simulate
from planner.engine.simulate.setup import IDLE_STEP, ContinuousReplica, Fleet, Pool
from planner.engine.simulate.traffic import batch


def warm_up() -> None:
    """Serve one request, so that the compiled code is in memory."""
    kind = ContinuousReplica(coefficients=IDLE_STEP._replace(step_s=0.001), kv_blocks=64)
    simulate(Fleet(pools=[Pool(kind=kind, replicas=1)]), [batch(np.zeros(1), np.ones(1), np.ones(1))])

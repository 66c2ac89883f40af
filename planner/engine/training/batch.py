"""How many tokens to train on, and how many of them in one optimizer step.

Compute-optimal data is about 20 tokens a parameter (Hoffmann et al., arXiv 2203.15556). Beyond the
critical batch ``2e8 / L^(1/0.21)`` tokens (Kaplan et al., arXiv 2001.08361) a larger batch, and so more
GPUs, stop paying: L is the loss the run ends at.
"""

from __future__ import annotations

from typing import Final

from planner.engine.param_count import ParameterCounts

TOKENS_PER_PARAM: Final = 20.0
FINETUNE_BATCH_SEQUENCES: Final = 128.0
"""A usual global batch of fine-tuning, where runs are too short for the critical batch to matter."""


def optimal_tokens(counts: ParameterCounts) -> float:
    """Compute-optimal training tokens: 20 for each parameter a token passes."""
    return TOKENS_PER_PARAM * counts.active


def final_loss(params: float, tokens: float) -> float:
    """Loss of a run, nats a token: ``E + A / N^a + B / D^b``, refitted by Besiroglu et al. (arXiv 2404.10102).

    >>> round(final_loss(70e9, 1.4e12), 4), round(final_loss(8e9, 15e12), 4)
    (1.9739, 2.0221)
    """
    return float(1.8172 + 482.01 / params**0.3478 + 2085.43 / tokens**0.3658)


def critical_batch_tokens(loss: float) -> float:
    """Tokens a step beyond which a larger batch no longer saves steps.

    >>> round(critical_batch_tokens(2.0) / 1e6, 1)
    7.4
    """
    return float(2e8 / loss ** (1.0 / 0.21))


def default_batch_sequences(critical_tokens: float, sequence_length: int) -> float:
    """The largest power of two of sequences that stays within the critical batch; at least 1."""
    sequences = max(1.0, critical_tokens / sequence_length)
    return float(1 << (int(sequences).bit_length() - 1))

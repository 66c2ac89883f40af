"""Texts of a trace as numbers: what each value must be."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.sentences import Sentence, say
from planner.services.trace_columns import TraceError

MAX_TOKENS: Final = 2**31 - 1
MAX_SECONDS: Final = 1e12
SHOWN: Final = 80
A_TIME: Final = "2023-11-16 18:15:46.68"


def seconds(texts: Sequence[str], numbers: Sequence[int], name: str) -> NDArray[Any]:
    """Seconds since the trace began; raises ``TraceError`` naming row and column."""
    values = _floats(texts, numbers, name, say("a number of seconds, 0 or more"))
    _refuse(
        ~(np.abs(values) <= MAX_SECONDS),
        say("Not a finite time."),
        texts,
        numbers,
        name,
        say("seconds up to {most}", most="1e12"),
    )
    _refuse(values < 0, say("Negative."), texts, numbers, name, say("0 or more seconds"))
    return values


def input_lengths(texts: Sequence[str], numbers: Sequence[int], name: str) -> NDArray[Any]:
    """Tokens of prompts, at least one each."""
    values = lengths(texts, numbers, name)
    _refuse(values == 0, say("A prompt of no tokens."), texts, numbers, name, say("1 to {most:,}", most=MAX_TOKENS))
    return values


def lengths(texts: Sequence[str], numbers: Sequence[int], name: str) -> NDArray[Any]:
    """Whole numbers of tokens, 0 or more."""
    allowed = say("a whole number from 0 to {most:,}", most=MAX_TOKENS)
    values = _floats(texts, numbers, name, allowed)
    _refuse(~np.isfinite(values), say("Not a finite number."), texts, numbers, name, allowed)
    _refuse(values < 0, say("Negative."), texts, numbers, name, allowed)
    _refuse(values > MAX_TOKENS, say("Out of range."), texts, numbers, name, allowed)
    _refuse(values != np.floor(values), say("Not a whole number."), texts, numbers, name, allowed)
    return values.astype(np.int32)


def _floats(texts: Sequence[str], numbers: Sequence[int], name: str, allowed: Sentence) -> NDArray[np.float64]:
    try:
        return np.array(list(map(float, texts)), dtype=np.float64)
    except ValueError:
        for text, number in zip(texts, numbers, strict=True):
            _one_float(text, number, name, allowed)
        raise


def _one_float(text: str, number: int, name: str, allowed: Sentence) -> None:
    try:
        float(text)
    except ValueError:
        message = say("Not a number.") if text.strip() else say("Empty.")
        raise TraceError(message, row=number, column=name, value=text[:SHOWN], allowed=allowed) from None


def _refuse(
    wrong: NDArray[np.bool_],
    message: Sentence,
    texts: Sequence[str],
    numbers: Sequence[int],
    name: str,
    allowed: Sentence,
) -> None:
    if wrong.any():
        at = int(np.argmax(wrong))
        shown = texts[at][:SHOWN]
        text = say("{message} ({value})", message=message, value=shown)
        raise TraceError(text, row=numbers[at], column=name, value=shown, allowed=allowed)


def _instants(texts: Sequence[str], numbers: Sequence[int], name: str) -> NDArray[Any]:
    """Timestamps (UTC) as seconds since 1970, to the microsecond."""
    plain = [text.strip().removesuffix("Z").removesuffix("+00:00") for text in texts]
    try:
        instants = np.array(plain, dtype="M8[ns]")
    except ValueError:
        for text, number in zip(plain, numbers, strict=True):
            try:
                np.datetime64(text, "ns")
            except ValueError:
                message, allowed = say("Not a time."), say("like {time}", time=A_TIME)
                raise TraceError(message, row=number, column=name, value=text[:SHOWN], allowed=allowed) from None
        raise
    missing = np.isnat(instants)
    _refuse(missing, say("Not a time."), texts, numbers, name, say("like {time}", time=A_TIME))
    # Whole seconds and the rest apart: a double can't hold nanoseconds since 1970.
    whole = instants.astype("M8[s]")
    seconds: NDArray[Any] = whole.astype(np.int64) + (instants - whole).astype(np.int64) * 1e-9
    return seconds


def _keys(texts: Sequence[str], numbers: Sequence[int], name: str) -> NDArray[Any]:
    """Names of shared prefixes as numbers; empty means none."""
    return np.array([_key(text.strip()) for text in texts], dtype=np.int64)


def _key(text: str) -> int:
    if not text:
        return -1
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def _names(texts: Sequence[str], numbers: Sequence[int], name: str) -> NDArray[Any]:
    return np.array([text.strip()[:SHOWN] for text in texts], dtype=np.str_)


READERS: Final[dict[str, Callable[[Sequence[str], Sequence[int], str], NDArray[Any]]]] = {
    "arrival": seconds,
    "time": _instants,
    "input": input_lengths,
    "output": lengths,
    "key": _keys,
    "shared": lengths,
    "name": _names,
}

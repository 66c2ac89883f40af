"""Texts of a trace as numbers: what each value must be."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.sentences import Sentence, say
from planner.services.trace_columns import TraceError

MAX_TOKENS: Final = 2**31 - 1
MOST_TIME: Final = 1e12
SHOWN: Final = 80
A_TIME: Final = "2023-11-16 18:15:46.68"
AN_OFFSET: Final = "+07:00"
_TIME: Final = re.compile(
    r"\s*((?:19[7-9]\d|2[01]\d\d)-\d\d-\d\d)(?:[ T](\d\d(?::\d\d(?::\d\d(?:\.\d{1,9})?)?)?)"
    r"\s?([Zz]|[+-](?:0\d|1[0-4])(?::?[0-5]\d)?)?)?\s*",
    re.ASCII,
)


def seconds(texts: Sequence[str], numbers: Sequence[int], name: str) -> NDArray[Any]:
    """Seconds since the trace began; raises ``TraceError`` naming row and column."""
    wanted = say("a number of seconds, 0 or more")
    most = say("seconds up to {most}", most="1e12")
    return _times(texts, numbers, name, wanted, most, say("0 or more seconds"))


def milliseconds(texts: Sequence[str], numbers: Sequence[int], name: str) -> NDArray[Any]:
    """The same in milliseconds, as seconds."""
    wanted = say("a number of milliseconds, 0 or more")
    most = say("milliseconds up to {most}", most="1e12")
    return _times(texts, numbers, name, wanted, most, say("0 or more milliseconds")) / 1e3


def _times(
    texts: Sequence[str], numbers: Sequence[int], name: str, wanted: Sentence, most: Sentence, least: Sentence
) -> NDArray[Any]:
    values = _floats(texts, numbers, name, wanted)
    _refuse(~np.isfinite(values), say("Not a finite time."), texts, numbers, name, most)
    _refuse(np.abs(values) > MOST_TIME, say("Out of range."), texts, numbers, name, most)
    _refuse(values < 0, say("Negative."), texts, numbers, name, least)
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
        # Python's own writing of numbers, such as 1_000, is nobody's in a file.
        if all(map(str.isascii, texts)) and not any("_" in text for text in texts):
            return np.array(list(map(float, texts)), dtype=np.float64)
    except ValueError:
        pass
    for text, number in zip(texts, numbers, strict=True):
        _one_float(text, number, name, allowed)
    raise AssertionError("every text is a number")


def _one_float(text: str, number: int, name: str, allowed: Sentence) -> None:
    try:
        if not text.isascii() or "_" in text:
            raise ValueError
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
    """Timestamps (UTC where they name no offset) as seconds since 1970, to the microsecond."""
    plain = np.array([text.strip().removesuffix("Z").removesuffix("+00:00") for text in texts], dtype=np.str_)
    try:
        instants = plain.astype("M8[ns]") if _are_plain_times(plain) else _each_instant(texts, numbers, name)
    except ValueError:
        instants = _each_instant(texts, numbers, name)
    # Whole seconds and the rest apart: a double can't hold nanoseconds since 1970.
    whole = instants.astype("M8[s]")
    seconds: NDArray[Any] = whole.astype(np.int64) + (instants - whole).astype(np.int64) * 1e-9
    return seconds


def _are_plain_times(texts: NDArray[np.str_]) -> bool:
    """Whether all look like 2023-11-16 18:15:46.68: numpy also reads "now" and lone years, and warns of offsets.

    >>> _are_plain_times(np.array(["2023-11-16 18:15", "2023-11-16"])), _are_plain_times(np.array(["2023", "now"]))
    (True, False)
    """
    characters = texts.view(np.uint32).reshape(len(texts), -1)
    if characters.shape[1] < len("2023-11-16"):
        return False
    digit = (characters >= ord("0")) & (characters <= ord("9"))
    within = np.isin(characters[:, 11:], [0, ord(":"), ord(".")]) | digit[:, 11:]
    centuries = 10 * (characters[:, 0].astype(np.int64) - ord("0")) + characters[:, 1] - ord("0")
    return bool(
        digit[:, [0, 1, 2, 3, 5, 6, 8, 9]].all()
        and (characters[:, [4, 7]] == ord("-")).all()
        and np.isin(characters[:, 10:11], [0, ord(" "), ord("T")]).all()
        and within.all()
        and ((centuries >= 20) & (centuries <= 21)).all()
    )


def _each_instant(texts: Sequence[str], numbers: Sequence[int], name: str) -> NDArray[np.datetime64]:
    """Times one by one, with their offsets; the first that is none is refused."""
    read = [_TIME.fullmatch(text) for text in texts]
    message = say("Not a time.")
    allowed = say("like {time}, with {offset} where it isn't UTC, from 1970 on", time=A_TIME, offset=AN_OFFSET)
    _refuse(np.array([match is None for match in read]), message, texts, numbers, name, allowed)
    found = [match.groups() for match in read if match is not None]
    instants = np.array([_instant_or_none(day, clock) for day, clock, _offset in found], dtype="M8[ns]")
    _refuse(np.isnat(instants), message, texts, numbers, name, allowed)
    offsets = np.array([_offset_minutes(offset) for *_, offset in found]).astype("m8[m]")
    moved: NDArray[np.datetime64] = instants - offsets
    return moved


def _instant_or_none(day: str, clock: str | None) -> np.datetime64:
    try:
        return np.datetime64(f"{day}T{clock or '00'}", "ns")
    except ValueError:
        return np.datetime64("NaT", "ns")


def _offset_minutes(offset: str | None) -> int:
    """Minutes east of Greenwich.

    >>> _offset_minutes("+07:00"), _offset_minutes("-0330"), _offset_minutes("Z"), _offset_minutes(None)
    (420, -210, 0, 0)
    """
    if not offset or offset in "Zz":
        return 0
    digits = offset[1:].replace(":", "")
    minutes = 60 * int(digits[:2]) + int(digits[2:] or 0)
    return -minutes if offset[0] == "-" else minutes


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

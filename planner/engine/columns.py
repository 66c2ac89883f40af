"""Columns over candidates, gathered in dataclasses: some rows of all of them, and rows that are alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
Columns = TypeVar("Columns")


def taken(columns: Columns, rows: IntArray) -> Columns:
    """Some rows of every column, however deep; candidates are an array's last axis, and one number stands for all.

    >>> taken((np.array([1.0, 2.0, 3.0]), 5.0), np.array([2, 0]))
    (array([3., 1.]), 5.0)
    """
    found: Columns = _taken(columns, rows)
    return found


def _taken(columns: Any, rows: IntArray) -> Any:
    if isinstance(columns, np.generic):
        return columns
    if isinstance(columns, np.ndarray):
        return columns[..., rows] if columns.ndim else columns
    if hasattr(columns, "take"):
        return columns.take(rows)
    if isinstance(columns, Mapping):
        return {name: _taken(value, rows) for name, value in columns.items()}
    if isinstance(columns, tuple):
        values = [_taken(value, rows) for value in columns]
        return type(columns)(*values) if hasattr(columns, "_fields") else tuple(values)
    if is_dataclass(columns):
        build: Any = type(columns)
        return build(**{f.name: _taken(getattr(columns, f.name), rows) for f in fields(columns)})
    return columns


def replaced(whole: Any, rows: IntArray, part: Any) -> Any:
    """``whole`` with some rows of every column, however deep, taken from ``part``, which has only those.

    >>> replaced({"speed": np.array([1.0, 2.0, 3.0])}, np.array([0, 2]), {"speed": np.array([7.0, 9.0])})
    {'speed': array([7., 2., 9.])}
    """
    if isinstance(whole, Mapping):
        return {name: replaced(value, rows, part[name]) for name, value in whole.items()}
    if isinstance(whole, np.ndarray):
        changed = whole.copy()
        changed[rows] = part
        return changed
    return type(whole)(**{f.name: replaced(getattr(whole, f.name), rows, getattr(part, f.name)) for f in fields(whole)})


def alike(columns: Any, count: int) -> tuple[IntArray, IntArray]:
    """The first of every ``count`` rows that have all columns in common, and which of these each row is like.

    >>> first, same = alike((np.array([7.0, 8.0, 7.0]), np.array([1, 1, 1]), 0.5), 3)
    >>> first.tolist(), same.tolist()
    ([0, 1], [0, 1, 0])
    """
    whole = [column for column in _arrays(columns) if column.shape == (count,)]
    table = np.stack([column.astype(np.float64, copy=False) for column in whole], axis=1)
    _, first, same = np.unique(
        table.view(np.dtype((np.void, table.itemsize * table.shape[1]))).ravel(), return_index=True, return_inverse=True
    )
    return first, same


def _arrays(columns: Any) -> Iterator[NDArray[Any]]:
    if isinstance(columns, np.ndarray):
        yield columns
    elif isinstance(columns, tuple):
        for value in columns:
            yield from _arrays(value)
    elif is_dataclass(columns):
        for f in fields(columns):
            yield from _arrays(getattr(columns, f.name))

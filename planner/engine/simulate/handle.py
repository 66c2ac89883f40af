"""One pointer for the whole state in compiled code.

A tuple of two dozen arrays passed by value through every call costs more than the work itself, so
compiled functions pass a *handle*: the address of a table that holds each array's address and shape.
``st.replicas`` on a handle rebuilds the array view from the table, which compiles to a load.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import carray, types  # type: ignore[attr-defined]
from numba.core import cgutils
from numba.extending import intrinsic, models, overload_attribute, register_model

from planner.engine.simulate.layout import FIELDS, Array, State

WORDS = 3
"""Table entries per array: address, rows, columns."""


class HandleType(types.Type):
    """The address of a state's table."""

    def __init__(self) -> None:
        super().__init__(name="SimulationStateHandle")


_HANDLE = HandleType()


@register_model(HandleType)
class _HandleModel(models.PrimitiveModel):
    def __init__(self, manager: Any, fe_type: Any) -> None:
        super().__init__(manager, fe_type, cgutils.intp_t)  # type: ignore[no-untyped-call]


def _open(typing: Any, table: Any) -> Any:

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.ptrtoint(array.data, cgutils.intp_t)

    return _HANDLE(table), build


def _to_address(typing: Any, handle: Any) -> Any:
    return types.int64(handle), lambda context, builder, signature, args: args[0]


def _to_pointer(typing: Any, address: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(address), build


open_state: Callable[[Array], State] = intrinsic(_open)  # type: ignore[assignment]
"""The handle of a table, in compiled code; the caller keeps table and arrays alive."""
_address: Any = intrinsic(_to_address)
_pointer: Any = intrinsic(_to_pointer)


def _view(position: int, dtype: np.dtype[Any], dimensions: int) -> Any:
    """The compiled getter of the array that stands at ``position`` of the table."""
    at, rows, columns = (WORDS * position + word for word in range(WORDS))
    element = dtype if dtype.names else dtype.type
    words = WORDS * len(FIELDS)

    # Numba compares parameters of getter and implementation, annotations included: hence none.
    def vector(st):  # type: ignore[no-untyped-def]
        table = carray(_pointer(_address(st)), (words,), np.int64)
        return carray(_pointer(table[at]), (table[rows],), element)

    def matrix(st):  # type: ignore[no-untyped-def]
        table = carray(_pointer(_address(st)), (words,), np.int64)
        return carray(_pointer(table[at]), (table[rows], table[columns]), element)

    getter = vector if dimensions == 1 else matrix
    return lambda st: getter


def _declare() -> None:
    for position, (name, (dtype, dimensions)) in enumerate(FIELDS.items()):
        overload_attribute(HandleType, name)(_view(position, np.dtype(dtype), dimensions))


_declare()


def table_of(state: State) -> Array:
    """The table of a state's arrays; valid as long as the state is and none of its arrays is replaced."""
    table = np.zeros(WORDS * len(FIELDS), np.int64)
    for position, (name, (dtype, dimensions)) in enumerate(FIELDS.items()):
        array = getattr(state, name)
        if array.dtype != dtype or array.ndim != dimensions or not array.flags.c_contiguous:
            raise TypeError(f"state array {name}: {array.dtype}, {array.ndim} dimensions")
        table[WORDS * position] = array.ctypes.data
        table[WORDS * position + 1 : WORDS * position + 1 + dimensions] = array.shape
    return table

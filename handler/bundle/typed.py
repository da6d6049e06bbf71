"""JSON of a bundle as the types that this program means by it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import is_dataclass
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from handler.bundle.types import BundleError


def typed(kind: Any, value: object, where: str) -> Any:
    """The value as `kind`: a plain type, a union, Literal, tuple or dict of them, a dataclass, or Any.

    Strict, because a wrong type is another meaning: `"no"` would count as true, and NaN lets nothing pass.
    Raises BundleError naming `where` it stands.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any or (origin is Literal and value in arguments):
        return value
    if is_dataclass(kind) and isinstance(kind, type) and isinstance(value, Mapping):
        return _dataclass(kind, value, where)
    if origin is UnionType and value is None:
        return None
    if origin is UnionType:
        return typed(arguments[0], value, where)
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(typed(arguments[0], each, f"{where}[{i}]") for i, each in enumerate(value))
    if origin is dict and isinstance(value, Mapping):
        return {key: typed(arguments[1], each, f"{where}.{key}") for key, each in value.items()}
    if kind is float and type(value) in (int, float) and math.isfinite(value):  # type: ignore[arg-type]
        return float(value)  # type: ignore[arg-type]
    if type(value) is kind and kind is not float:  # not isinstance: True is an int
        return value
    raise BundleError(f"{where}: {value!r:.80} is not {_name(kind)}")


def _dataclass(kind: type, table: Mapping[str, object], where: str) -> Any:
    kinds = get_type_hints(kind)
    for name in [*kinds, *table]:
        if name not in table:
            raise BundleError(f"{where}.{name} is missing")
        if name not in kinds:
            raise BundleError(f"{where}.{name} is unknown to this program")
    return kind(**{name: typed(kinds[name], table[name], f"{where}.{name}") for name in kinds})


def _name(kind: Any) -> str:
    if kind is float:
        return "a number"
    return "a table" if is_dataclass(kind) else f"of type {getattr(kind, '__name__', kind)}"

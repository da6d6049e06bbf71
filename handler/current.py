"""What answers at the moment."""

from __future__ import annotations

from dataclasses import dataclass

from handler.bundle.bundle import Bundle
from handler.generate.types import Generator


@dataclass(frozen=True, slots=True)
class Serving:
    """A bundle and who makes answers of it; they belong together, as the encoder is the bundle's."""

    bundle: Bundle
    generator: Generator


@dataclass(slots=True)
class Current:
    """Holds what answers now. A reload puts another one in; whoever took the old one ends with it."""

    serving: Serving

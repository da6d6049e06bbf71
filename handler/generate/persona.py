"""Who the bot says it is: a file of markdown that the owner of the site edits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from handler.bundle.types import BundleError

PERSONA = Path(__file__).resolve().parent.parent / "persona.md"


@dataclass(frozen=True, slots=True)
class Persona:
    """The whole text for the model, and the bot's name, which is the text's first line."""

    name: str
    text: str


def read_persona(path: Path = PERSONA) -> Persona:
    """The persona of a file. Raises BundleError, in one sentence, when it cannot be read or is empty."""
    try:
        text = path.read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BundleError(f"the persona {path} cannot be read: {error}") from None
    name = text.partition("\n")[0].strip("# \t")
    if not name:
        raise BundleError(f"the persona {path} has no name: its first line is the bot's")
    return Persona(name, text)


def persona_reader(path: Path = PERSONA, *, fresh: bool = False) -> Callable[[], Persona]:
    """Gives the persona as it was now or, with `fresh`, as the file has it at each call.

    Raises BundleError now when there is none.
    """
    persona = read_persona(path)
    return (lambda: read_persona(path)) if fresh else (lambda: persona)

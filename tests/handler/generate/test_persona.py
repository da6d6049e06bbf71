from __future__ import annotations

from pathlib import Path

import pytest

from handler.bundle.types import BundleError
from handler.generate.persona import persona_reader, read_persona


def test_the_persona_that_ships_is_davo_bot_2000() -> None:
    persona = read_persona()
    assert persona.name == "davo-bot 2000"
    assert persona.text.startswith("# davo-bot 2000\n")


def test_an_edit_shows_at_once_only_where_it_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "bot.md"
    path.write_text("Frog\nYou are a frog.")
    kept, fresh = persona_reader(path), persona_reader(path, fresh=True)
    path.write_text("\ufeff# Toad\nYou are a toad.", encoding="utf-8")
    assert (kept().name, fresh().name) == ("Frog", "Toad")


@pytest.mark.parametrize("content", [None, b"", b" \n#\n", b"\xff\xfe\x00"])
def test_a_persona_that_is_none_is_an_error_of_one_sentence(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "bot.md"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BundleError, match=r"bot\.md"):
        persona_reader(path)

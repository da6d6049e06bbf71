"""Which allowed folder a path lies in."""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.settings import read_ingest_settings
from ralph_fs import moving
from ralph_fs.refusal import RefusedError
from ralph_fs.roots import MAX_DEPTH, read_scope
from ralph_fs.server import make_server
from ralph_fs.settings import Settings, SettingsError, read_settings
from tests.fakes.mcp_files import Answer, Ground

Call = Callable[..., Answer]


def scope_settings(root_dir: Path, *allowed: Path) -> Settings:
    return Settings(root_dir, allowed or (root_dir,), read_ingest_settings({}))


def test_relative_paths_start_in_the_root_folder_and_not_in_the_first_allowed_one(tmp_path: Path) -> None:
    for name in ("wide", "wide/ralph", "other"):
        (tmp_path / name).mkdir()
    settings = scope_settings(tmp_path / "wide" / "ralph", tmp_path / "other", tmp_path / "wide")
    scope = read_scope(settings, "linux")
    assert scope.place("x.md").parts == ("ralph", "x.md")
    assert scope.place("../til/x.md").parts == ("til", "x.md")
    assert scope.place(str(tmp_path / "other" / "a")).root == str(tmp_path / "other")
    with pytest.raises(RefusedError, match="outside"):
        scope.place("../../x.md")


def test_an_answer_spells_paths_as_the_client_did(ground: Ground) -> None:
    assert ground.scope.place("docs/").beneath("a", "b.md").shown == "docs/a/b.md"
    assert ground.scope.place(".").beneath("b.md").shown == "b.md"


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_the_case_of_the_allowed_folder_does_not_matter_where_the_file_system_ignores_it(
    tmp_path: Path, platform: str
) -> None:
    (tmp_path / "Sites").mkdir()
    spelled = f"{tmp_path}/sITES/Page.md"
    scope = read_scope(scope_settings(tmp_path / "Sites"), platform)
    assert scope.place(spelled).parts == ("Page.md",)
    with pytest.raises(RefusedError):
        scope.place(f"{tmp_path}/sites-evil/x")
    with pytest.raises(RefusedError):
        read_scope(scope_settings(tmp_path / "Sites"), "linux").place(spelled)


def test_the_case_of_an_allowed_folder_does_not_help_to_delete_it(tmp_path: Path) -> None:
    (tmp_path / "Sites").mkdir()
    scope = read_scope(scope_settings(tmp_path / "Sites"), "darwin")
    with pytest.raises(RefusedError, match="stays"):
        scope.removable(f"{tmp_path}/sites")


def test_a_folder_that_holds_the_root_folder_is_kept(tmp_path: Path) -> None:
    (tmp_path / "wide" / "mine" / "ralph").mkdir(parents=True)
    scope = read_scope(scope_settings(tmp_path / "wide" / "mine" / "ralph", tmp_path / "wide"), "linux")
    for path in (".", "..", "../..", str(tmp_path / "wide" / "mine")):
        with pytest.raises(RefusedError, match="stays"):
            scope.removable(path)
    assert scope.removable("../other").parts == ("mine", "other")


def test_another_name_of_a_folder_does_not_help_to_delete_it(tmp_path: Path) -> None:
    (tmp_path / "wide" / "mine" / "ralph").mkdir(parents=True)
    (tmp_path / "wide" / "alias").symlink_to("mine")
    scope = read_scope(scope_settings(tmp_path / "wide" / "mine" / "ralph", tmp_path / "wide"), "linux")
    place = scope.removable(f"{tmp_path}/wide/alias/ralph")
    with pytest.raises(RefusedError, match="stays"):
        moving.delete(place, scope.kept_folders, recursive=True)
    with pytest.raises(RefusedError, match="stays"):
        moving.move(place, scope.place(f"{tmp_path}/wide/other"), scope.kept_folders)
    moving.delete(scope.removable(f"{tmp_path}/wide/alias"), scope.kept_folders, recursive=True)
    assert (tmp_path / "wide" / "mine" / "ralph").is_dir()


def test_an_allowed_folder_may_be_a_link_and_is_found_by_both_spellings(call: Call, tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    (real / "a.md").write_text("a")
    scope = read_scope(scope_settings(link), "linux")
    for path in ("a.md", f"{link}/a.md", f"{real}/a.md"):
        assert (scope.place(path).root, scope.place(path).parts) == (str(real), ("a.md",))


def test_a_path_that_is_very_deep_is_refused(ground: Ground) -> None:
    with pytest.raises(RefusedError, match="deep"):
        ground.scope.place("d/" * (MAX_DEPTH + 1))


@pytest.mark.parametrize("stored", ["NFC", "NFD"])
@pytest.mark.parametrize("asked", ["NFC", "NFD"])
def test_a_name_is_found_in_either_unicode_form(call: Call, ground: Ground, stored: str, asked: str) -> None:
    def spelled(form: str) -> str:
        return unicodedata.normalize(form, "Über/Café.md")  # type: ignore[arg-type]

    (ground.root / spelled(stored)).parent.mkdir()
    (ground.root / spelled(stored)).write_text("coffee")
    path = spelled(asked)
    assert call("read_file", path=path).text == "coffee"
    assert "Caf" in call("search_files", pattern="**/" + path.rpartition("/")[2]).text
    assert not call("write_file", path=path, content="tea").is_error
    assert (ground.root / spelled(stored)).read_text() == "tea"
    assert len(list((ground.root / spelled(stored)).parent.iterdir())) == 1


def test_the_defaults_are_the_current_folder_and_nothing_else(tmp_path: Path) -> None:
    settings = read_settings({"RALPH_ALLOWED_DIRS": "", "RALPH_ROOT_DIR": ""}, tmp_path)
    assert (settings.root_dir, settings.allowed_dirs) == (tmp_path, (tmp_path,))


def test_the_folders_are_read_from_the_environment(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    environ = {"RALPH_ALLOWED_DIRS": f"{tmp_path}/a::{tmp_path}/b", "RALPH_ROOT_DIR": "b"}
    settings = read_settings(environ, tmp_path)
    assert (settings.root_dir, settings.allowed_dirs) == (tmp_path / "b", (tmp_path / "a", tmp_path / "b"))


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"RALPH_ALLOWED_DIRS": "missing"}, "RALPH_ALLOWED_DIRS: 'missing' is no folder"),
        ({"RALPH_ROOT_DIR": "missing"}, "RALPH_ROOT_DIR: 'missing' is no folder"),
        ({"RALPH_ALLOWED_DIRS": "~nobody-of-this-name"}, "is no folder"),
        ({"RALPH_ALLOWED_DIRS": "x" * 5_000}, "is no folder"),
        ({"RALPH_TODAY": "yesterday"}, "RALPH_TODAY"),
        ({"RALPH_ALLOWED_DIRS": "/"}, "whole machine"),
        ({"RALPH_ALLOWED_DIRS": "a", "RALPH_ROOT_DIR": "a-evil"}, "in none of RALPH_ALLOWED_DIRS"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, environ: dict[str, str], message: str) -> None:
    for name in ("a", "a-evil"):
        (tmp_path / name).mkdir()
    with pytest.raises(SettingsError, match=message):
        read_settings(environ, tmp_path)


def test_a_server_for_all_projects_starts_in_one_that_is_not_allowed(tmp_path: Path) -> None:
    """A relative path then means what it says, and is refused; it never comes to mean another folder."""
    for name in ("sites", "project"):
        (tmp_path / name).mkdir()
    settings = read_settings({"RALPH_ALLOWED_DIRS": f"{tmp_path}/sites"}, tmp_path / "project")
    assert make_server(settings).instructions == f"Write absolute paths. Allowed: {tmp_path}/sites."
    scope = read_scope(settings, "linux")
    with pytest.raises(RefusedError, match="write an absolute path"):
        scope.place("x.md")
    assert scope.place(f"{tmp_path}/sites/x.md").parts == scope.place("../sites/x.md").parts == ("x.md",)


def test_an_allowed_folder_above_a_link_is_the_one_that_the_system_finds(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real/inner")
    settings = read_settings({"RALPH_ALLOWED_DIRS": f"{tmp_path}/link/.."}, tmp_path / "real")
    assert settings.allowed_dirs == (tmp_path / "real",)


def test_several_allowed_folders_are_told_to_the_client(ground: Ground, tmp_path: Path) -> None:
    wide = dataclasses.replace(ground.settings, allowed_dirs=(ground.root, ground.outside))
    assert str(ground.outside) in (make_server(wide).instructions or "")

"""What is listed and found, in which order, and what is said of the rest."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph_fs import walking
from ralph_fs.finding import MAX_FOUND
from ralph_fs.globs import read_glob
from ralph_fs.listing import MAX_LISTED
from ralph_fs.refusal import RefusedError
from ralph_fs.text_search import MAX_MATCHES, Query, search_text
from tests.fakes.mcp_files import Answer, Ground

Call = Callable[..., Answer]


def add(ground: Ground, *paths: str, content: str = "") -> None:
    for path in paths:
        (ground.root / path).parent.mkdir(parents=True, exist_ok=True)
        (ground.root / path).write_text(content)


def test_a_folder_is_listed_by_name_with_sizes(call: Call, ground: Ground) -> None:
    (ground.root / "link").symlink_to("docs")
    (ground.root / "empty").mkdir()
    assert call("list_directory").text.splitlines() == ["docs/", "empty/", "link@", "note.txt\t14"]
    assert call("list_directory", path="empty").text == "[empty]"
    assert call("directory_tree", path="empty").text == "[empty]"


def test_a_name_takes_one_line_whatever_is_in_it(call: Call, ground: Ground) -> None:
    add(ground, "a\nb", "tab\there", "\x1b[31mred")
    lines = call("list_directory").text.splitlines()
    assert lines == ["\\x1b[31mred\t0", "a\\nb\t0", "docs/", "note.txt\t14", "tab\\there\t0"]


def test_a_large_folder_is_cut_and_the_rest_is_counted(call: Call, ground: Ground) -> None:
    for number in range(MAX_LISTED + 5):
        (ground.root / "docs" / f"{number:05}").touch()
    lines = call("list_directory", path="docs").text.splitlines()
    assert len(lines) == MAX_LISTED + 1
    assert lines[-1].startswith("[6 more of 1,006")
    tree = call("directory_tree").text.splitlines()
    assert len(tree) < 60
    assert "  [more]" in tree
    assert "note.txt" in tree


def test_a_tree_shows_what_is_beneath_down_to_a_depth(call: Call, ground: Ground) -> None:
    add(ground, "a/b/c/d.txt", "a/b/e.txt", ".git/config", "docs/x.log", "node_modules/x/y.js")
    assert call("directory_tree", depth=2, exclude=["*.log"]).text.splitlines() == [
        ".git/",
        "a/",
        "  b/",
        "docs/",
        "  page.md",
        "node_modules/",
        "note.txt",
        "[not entered: .git, node_modules]",
    ]
    assert "d.txt" in call("directory_tree", depth=9).text
    assert "b/" not in call("directory_tree", depth=9, exclude=["a/b"]).text
    assert "config" in call("directory_tree", path=".git").text


def test_a_tree_of_many_folders_is_cut(call: Call, ground: Ground) -> None:
    for folder, file in itertools.product(range(40), range(30)):
        add(ground, f"{folder}/{file}")
    lines = call("directory_tree").text.splitlines()
    assert len(lines) == 501
    assert "cut after 500 lines" in lines[-1]


def test_a_tree_without_end_is_walked_to_a_number_of_files(ground: Ground) -> None:
    for number in range(30):
        add(ground, f"many/{number}")
    walk = walking.Walk(ground.scope.place("."), max_entries=10)
    assert len(list(walk)) == 10
    assert "stopped after 10" in walk.note()


def test_a_folder_is_walked_however_deep_it_is(call: Call, ground: Ground) -> None:
    folder = ground.root
    for _ in range(140):
        folder /= "d"
        folder.mkdir()
    assert "1 folders cannot be read" in call("search_files", pattern="*.txt").text


def test_facts_of_a_file_are_told(call: Call, ground: Ground) -> None:
    (ground.root / "note.txt").chmod(0o640)
    (ground.root / "link").symlink_to("/etc/passwd")
    lines = call("file_info", path="note.txt").text.splitlines()
    assert lines[:3] == ["type: file", "bytes: 14", "mode: 0640"]
    assert lines[3].startswith("modified: 20")
    assert call("file_info", path=".").text.startswith("type: folder")
    assert "passwd" not in call("file_info", path="link").text
    assert call("file_info", path="link").text.startswith("type: symbolic link")
    assert call("file_info", path="missing").is_error


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.md", {"a.md", "docs/b.md", "docs/de/ç.md", ".hidden.md"}),
        ("./*.md", {"a.md", ".hidden.md"}),
        ("docs/*.md", {"docs/b.md"}),
        ("docs/**", {"docs", "docs/b.md", "docs/de", "docs/de/c.mdx", "docs/de/ç.md"}),
        ("docs/", {"docs", "docs/b.md", "docs/de", "docs/de/c.mdx", "docs/de/ç.md"}),
        ("**/*.{mdx,txt}", {"docs/de/c.mdx", "x.txt"}),
        ("**/de/**/c.*", {"docs/de/c.mdx"}),
        ("?.txt", {"x.txt"}),
        ("[a-c].md", {"a.md", "docs/b.md"}),
        ("de", {"docs/de"}),
        ("*.MD", set()),
        ("../*", set()),
    ],
)
def test_a_glob_finds_what_a_shell_would(pattern: str, found: set[str]) -> None:
    paths = ["a.md", ".hidden.md", "x.txt", "docs", "docs/b.md", "docs/de", "docs/de/c.mdx", "docs/de/ç.md"]
    glob = read_glob(pattern)
    assert {path for path in paths if glob.matches(path.split("/"))} == found
    for path in found:
        names = path.split("/")
        assert all(glob.may_match_beneath(names[:n]) for n in range(len(names)))


def test_a_glob_rules_out_folders_that_hold_nothing_for_it() -> None:
    glob = read_glob("docs/*/x.md")
    assert glob.may_match_beneath(["docs", "de"])
    assert not glob.may_match_beneath(["src"])
    assert not glob.may_match_beneath(["docs", "de", "x.md"])


@given(st.text("ab*?[]!{},/.-\\", max_size=30), st.lists(st.text("ab.", min_size=1, max_size=20), max_size=6))
@settings(max_examples=300, deadline=None)
def test_any_pattern_is_matched_or_refused(pattern: str, names: list[str]) -> None:
    try:
        glob = read_glob(pattern)
    except RefusedError:
        return
    if glob.matches(names):
        assert all(glob.may_match_beneath(names[:n]) for n in range(len(names)))


def test_many_stars_in_a_row_are_one() -> None:
    assert read_glob("**/" * 100 + "*.md") == read_glob("**/*.md")
    assert read_glob("**/**").matches(["a"])


def test_a_pattern_made_to_be_slow_is_not() -> None:
    names = ["a" * 200] * 120
    assert not read_glob("**/" * 100 + "b").matches(names)
    assert not read_glob("*a" * 200 + "b").matches(names)
    for empty in ("", "/", "./."):
        with pytest.raises(RefusedError):
            read_glob(empty)
    for bomb in ("{a,b}" * 20, "{" * 400 + "}" * 90, "x" * 10_000):
        try:
            read_glob(bomb)
        except RefusedError:
            continue


def test_files_are_found_by_name_and_named_as_the_client_can_use_them(call: Call, ground: Ground) -> None:
    add(ground, "docs/de/page.md", ".git/page.md", "page.txt")
    assert call("search_files", pattern="page.*").text.splitlines() == [
        "docs/de/page.md",
        "docs/page.md",
        "page.txt",
        "[not entered: .git]",
    ]
    assert call("search_files", pattern="*.md", path="docs").text == "docs/de/page.md\ndocs/page.md"
    assert call("search_files", pattern="*.md", exclude=["de"]).text.startswith("docs/page.md\n")
    assert call("search_files", pattern="docs").text.startswith("docs/\n")
    assert call("search_files", pattern="*.pdf", path="docs").text == "[nothing fits]"
    whole = f"{ground.root}/docs"
    assert call("search_files", pattern="page.md", path=whole).text.splitlines()[1] == f"{whole}/page.md"


def test_many_files_are_cut(call: Call, ground: Ground) -> None:
    for number in range(MAX_FOUND + 1):
        (ground.root / f"{number}.log").touch()
    lines = call("search_files", pattern="*.log").text.splitlines()
    assert len(lines) == MAX_FOUND + 1
    assert "only the first" in lines[-1]


def test_lines_are_found_with_their_numbers(call: Call, ground: Ground) -> None:
    add(ground, "docs/b.md", content="a pond\r\nThe Pond, the pond\n\nno\npond")
    assert call("search_text", query="pond").text.splitlines() == [
        "docs/b.md:1: a pond",
        "docs/b.md:2: The Pond, the pond",
        "docs/b.md:5: pond",
        "docs/page.md:3: The pond has algae.",
    ]
    assert call("search_text", query="THE POND", ignore_case=True, glob="b.*").text == (
        "docs/b.md:2: The Pond, the pond"
    )
    assert call("search_text", query=r"^\w+$", regex=True, path="docs/b.md").text == (
        "docs/b.md:4: no\ndocs/b.md:5: pond"
    )
    assert call("search_text", query=".*", path="docs").text == "[no line fits]"
    assert len(call("search_text", query="x*", regex=True, path="note.txt").text.splitlines()) == 3


def test_a_long_line_is_shown_around_what_was_found(call: Call, ground: Ground) -> None:
    add(ground, "a.js", content="x" * 50_000 + "needle" + "y" * 50_000)
    line = call("search_text", query="needle").text
    assert "needle" in line
    assert len(line) < 350


def test_many_lines_are_cut(call: Call, ground: Ground) -> None:
    add(ground, "a", content="needle\n" * 1_000)
    lines = call("search_text", query="needle").text.splitlines()
    assert len(lines) == MAX_MATCHES + 1
    assert "only the first 200" in lines[-1]


def test_files_that_hold_no_text_are_left_out_and_counted(call: Call, ground: Ground) -> None:
    (ground.root / "a.bin").write_bytes(b"needle\0")
    with (ground.root / "huge").open("wb") as file:
        file.truncate(10**8)
    (ground.root / "latin").write_bytes(b"caf\xe9 needle")
    text = call("search_text", query="needle").text
    assert "latin:1: caf\ufffd needle" in text
    assert "2 files" in text


def test_an_expression_that_takes_for_ever_is_stopped(ground: Ground) -> None:
    add(ground, "a", content="a" * 5_000 + "!")
    query = Query(r"(a|aa)+$", is_regex=True)
    text = search_text(ground.scope.place("."), query, read_glob("*"), 0.2)
    assert "stopped after 0.2 s" in text


@pytest.mark.parametrize(
    "query", ["(?R)", "(", "[z-a]", "*", "", "x" * 2_000, "(?P<a>.)(?P<a>", "a{99999999999999999999}"]
)
def test_a_query_that_is_no_expression_is_refused(call: Call, query: str) -> None:
    answer = call("search_text", query=query, regex=True)
    assert answer.is_error
    assert "Error executing tool search_text:" in answer.text

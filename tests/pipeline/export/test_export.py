"""What every kind of site has in common: addresses, privacy, files and their account."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable
from datetime import date

import pytest

from pipeline.export.exporters import export
from pipeline.export.types import Export
from pipeline.site import Instance, Site, SiteError

TODAY = date(2026, 1, 1)

MakeSite = Callable[..., Site]

PRIVATE = {
    "docs/draft.md": "---\ndraft: true\n---\nsecret",
    "docs/private.md": '---\nprivate: "yes"\n---\nsecret',
    "docs/unlisted.md": "---\nunlisted: 1\n---\nsecret",
    "docs/unpublished.md": "---\npublished: false\n---\nsecret",
    "docs/status.md": "---\nstatus: draft\n---\nsecret",
    "docs/broken.md": "---\ntitle: A: B\ndraft: true\n---\nsecret",
    "docs/out/page.md": "---\ntitle: x\n---\nsecret",
}


def urls_of(exported: Export) -> dict[str, str]:
    return {page.path: page.url for page in exported.pages}


def reasons(exported: Export) -> dict[str, str]:
    return {exclusion.path: exclusion.reason for exclusion in exported.exclusions}


@pytest.mark.parametrize("kind", ["markdown", "docusaurus", "hugo", "zola", "jekyll", "wordpress"])
def test_private_pages_leave_no_kind_of_markdown_site(kind: str, make_site: MakeSite) -> None:
    site = make_site(
        kind,
        PRIVATE | {"docs/a.md": "---\ntitle: A\n---\nText"},
        exclude=("out/",),
        instances=(Instance("docs", "docs", "docs"),),
    )
    exported = export(site, TODAY)
    assert list(urls_of(exported)) == ["docs/a.md"]
    assert sorted(reasons(exported)) == sorted(PRIVATE)
    assert exported.n_pages_in == 1 + len(PRIVATE)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_draft_is_one_in_every_encoding(encoding: str, newline: str, make_site: MakeSite) -> None:
    text = newline.join(["---", "title: café", "draft: true", "---", "secret"])
    assert export(make_site("markdown", {"a.md": text.encode(encoding)}), TODAY).pages == ()


def test_what_no_text_can_hold_is_replaced(make_site: MakeSite) -> None:
    front = '---\ntitle: "one \\ud83d\\ude00 \\ud83d \\0"\nslug: "a\\ud83d"\n---\nbo\0dy'
    page = export(make_site("markdown", {"a.md": front}), TODAY).pages[0]
    assert (page.title, page.url, page.body) == (
        "one 😀 \ufffd \ufffd",
        "https://example.org/a\ufffd",
        "bo\ufffddy",
    )


@pytest.mark.parametrize("kind", ["markdown", "docusaurus", "jekyll"])
def test_partials_leave_no_site_that_has_them(kind: str, make_site: MakeSite) -> None:
    files = {"docs/_part.md": "---\na: b\n---\nsecret", "docs/_more/a.md": "---\na: b\n---\nsecret"}
    site = make_site(kind, files, instances=(Instance("docs", "docs", "docs"),))
    assert reasons(export(site, TODAY)) == dict.fromkeys(sorted(files), "a partial")


def test_malformed_front_matter_keeps_the_page_and_names_file_and_line(make_site: MakeSite) -> None:
    exported = export(
        make_site("markdown", {"a.md": "---\nslug: there\ntitle: A: B\n---\nAll the text.\n"}), TODAY
    )
    assert [(p.title, p.url, p.body) for p in exported.pages] == [
        ("A: B", "https://example.org/there", "All the text.\n")
    ]
    assert [(w.path, w.line) for w in exported.warnings] == [("a.md", 3)]


def test_two_pages_with_one_url_are_an_error_that_names_both(make_site: MakeSite) -> None:
    with pytest.raises(SiteError, match=r"a\.md and b\.md have one URL, https://example\.org/same;"):
        export(
            make_site("markdown", {"a.md": "---\nslug: same\n---\n", "b.md": "---\nurl: /same\n---\n"}), TODAY
        )


@pytest.mark.parametrize("url", ["javascript:alert(1)", "ftp://example.org/", "//elsewhere.org/a"])
def test_a_url_of_another_scheme_is_an_error_that_names_the_key(url: str, make_site: MakeSite) -> None:
    with pytest.raises(SiteError, match=r"a\.md: url: "):
        export(make_site("markdown", {"a.md": f"---\nurl: '{url}'\n---\nText"}), TODAY)


def test_files_that_differ_in_case_or_punctuation_are_pages_of_their_own(make_site: MakeSite) -> None:
    names = ["2026-06-16.md", "2026_06_16.md", "readme.md", "README.md", "a.md", "b/a.mdx"]
    exported = export(make_site("markdown", dict.fromkeys(names, "Text")), TODAY)
    assert len(set(urls_of(exported).values())) == len(names)


def test_empty_files_and_front_matter_alone_are_pages_with_a_warning(make_site: MakeSite) -> None:
    exported = export(make_site("markdown", {"empty.md": "", "alone.md": "---\ntitle: Alone\n---\n"}), TODAY)
    assert [(p.title, p.body) for p in exported.pages] == [("Alone", ""), ("empty", "")]
    assert [w.path for w in exported.warnings] == ["alone.md", "empty.md"]


def test_symbolic_links_out_of_the_source_are_refused(make_site: MakeSite) -> None:
    site = make_site("markdown", {"a.md": "Text", "b/c.md": "Text"})
    outside = site.source_path.parent / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    for name, target in {
        "link.md": outside / "secret.md",
        "dangling.md": outside / "nowhere.md",
        "loop.md": site.source_path / "loop.md",
        "folder": outside,
        "inside.md": site.source_path / "a.md",
    }.items():
        (site.source_path / name).symlink_to(target)
    exported = export(site, TODAY)
    assert list(urls_of(exported)) == ["a.md", "b/c.md", "inside.md"]
    assert reasons(exported) == {
        "dangling.md": "a symbolic link out of the source",
        "folder/": "a symbolic link to a folder",
        "link.md": "a symbolic link out of the source",
        "loop.md": "a symbolic link out of the source",
    }


def test_pipes_hidden_files_and_folders_are_not_read(make_site: MakeSite) -> None:
    site = make_site("markdown", {"a.md": "Text", "._a.md": "x", ".git/b.md": "x", "node_modules/c.md": "x"})
    os.mkfifo(site.source_path / "pipe.md")
    exported = export(site, TODAY)
    assert list(urls_of(exported)) == ["a.md"]
    assert reasons(exported) == {"._a.md": "a hidden file", "pipe.md": "not a plain file"}


@pytest.mark.parametrize(
    ("data", "body", "message"),
    [
        (b"one\ncaf\xe9\n", "one\ncafé\n", "not UTF-8; read as Windows-1252"),
        (b"a\x81\xe9", "a\x81é", "not UTF-8; read as Latin-1"),
        ("é".encode("utf-16"), "é", "read as UTF-16; save it as UTF-8"),
        (b"\xff\xfea\0b", "a\ufffd", "read as UTF-16; save it as UTF-8"),
        ("four".encode("utf-16-be"), "four", "read as UTF-16; save it as UTF-8"),
        ("é".encode("utf-32"), "é", "read as UTF-32; save it as UTF-8"),
    ],
)
def test_other_encodings_are_read_and_said(data: bytes, body: str, message: str, make_site: MakeSite) -> None:
    exported = export(make_site("markdown", {"a.md": data}), TODAY)
    assert exported.pages[0].body == body
    assert [w.message for w in exported.warnings if "no text" not in w.message] == [message]


def test_include_and_exclude_are_patterns_of_paths(make_site: MakeSite) -> None:
    site = make_site(
        "markdown",
        dict.fromkeys(["docs/a.md", "docs/old/b.md", "other/c.md", "docs/d.private.md"], "Text"),
        include=("docs/**",),
        exclude=("docs/old/", "*.private.md"),
    )
    exported = export(site, TODAY)
    assert list(urls_of(exported)) == ["docs/a.md"]
    assert reasons(exported) == {
        "docs/d.private.md": "excluded by site.toml",
        "docs/old/b.md": "excluded by site.toml",
        "other/c.md": "not included by site.toml",
    }


def test_comments_are_no_text(make_site: MakeSite) -> None:
    page = export(make_site("markdown", {"a.md": "Shown <!-- hidden --> `<!-- shown -->`"}), TODAY).pages[0]
    assert page.body == "Shown  `<!-- shown -->`"


def test_a_page_of_a_hundred_megabytes_is_exported_in_bounded_memory(make_site: MakeSite) -> None:
    line = b"A line of prose, with some `code` in it and a fair number of words.\n"
    size = 100_000_000
    site = make_site("markdown", {"big.md": line * (size // len(line))})
    tracemalloc.start()
    page = export(site, TODAY).pages[0]
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(page.body) == size // len(line) * len(line)
    assert peak_bytes < 5 * size

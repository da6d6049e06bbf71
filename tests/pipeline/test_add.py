"""`ralph add` shows first, asks, and only then writes a site.toml that loads."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.add import main
from pipeline.detect import detect
from pipeline.site import Collection, Instance, Site, load_collections, load_site

MakeSite = Callable[..., Site]
DOCS = Collection("docs", "The docs", public=True)

KINDS = {
    "docusaurus": {
        "docusaurus.config.js": "export default {\n  url: 'https://example.org',\n  baseUrl: '/til/',\n"
        "  plugins: [{id: 'n', path: 'notes', routeBasePath: 'n'}],\n};\n",
        "docs/a.md": "A",
        "notes/b.md": "B",
        "blog/2024-05-01-c.md": "C",
    },
    "hugo": {"hugo.toml": 'baseURL = "https://example.org/"\n', "content/a.md": "---\ntitle: x\n---\nText"},
    "zola": {"config.toml": 'base_url = "https://example.org"\n', "content/a.md": "+++\n+++\nText"},
    "jekyll": {
        "_config.yml": "url: https://example.org\nbaseurl: /blog\n",
        "a.md": "---\ntitle: x\n---\nText",
    },
    "wordpress": {"_posts/a.md": "---\nID: 1\npost_title: x\npermalink: https://example.org/a/\n---\nText"},
    "markdown": {"CNAME": "example.org\n", "a.md": "Text", "b.html": "<p>x</p>", "c.md": "Text"},
    "html": {
        "CNAME": "example.org\n",
        "a.html": "<title>A</title><p>Text</p>",
        "b.html": "<title>B</title><p>Text</p>",
    },
}


def sites(tmp_path: Path) -> Path:
    folder = tmp_path / "sites"
    folder.mkdir(exist_ok=True)
    (folder / "collections.toml").write_text('[docs]\ntitle = "The docs"\npublic = true\n')
    return folder


def never_asked(_: str) -> str:
    raise AssertionError("nobody should be asked")


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_told_and_written_so_that_it_loads(
    kind: str, make_site: MakeSite, tmp_path: Path
) -> None:
    source, folder = make_site(kind, KINDS[kind]).source, sites(tmp_path)
    argv = [source, "--collection", "docs", "--name", "new", "--sites", str(folder), "--yes"]
    assert main(argv, never_asked) == 0
    site = load_site(folder / "new" / "site.toml", load_collections(folder), {})
    assert isinstance(site, Site)
    assert (site.kind, site.source, site.collection) == (kind, source, "docs")
    assert site.base_url.startswith("https://example.org/")


def test_docusaurus_instances_are_told_from_the_configuration(make_site: MakeSite) -> None:
    found = detect(make_site("docusaurus", KINDS["docusaurus"]).source)
    assert found is not None
    assert found.base_url == "https://example.org/til/"
    assert found.instances == (
        Instance("blog", "blog", "blog"),
        Instance("docs", "docs", "docs"),
        Instance("docs", "notes", "n"),
    )


def test_docusaurus_docs_beside_its_folder_are_found_from_above_and_missed_aloud(make_site: MakeSite) -> None:
    config = "presets: [{docs: {path: '../docs', routeBasePath: '/'}, blog: {path: './blog'}}],\n"
    files = {"website/docusaurus.config.js": config, "website/blog/2024-05-01-c.md": "C", "docs/a.md": "A"}
    root = make_site("docusaurus", files).source_path
    above, below = detect(str(root)), detect(str(root / "website"))
    assert above is not None and below is not None
    assert above.instances == (Instance("docs", "docs", ""), Instance("blog", "website/blog", "blog"))
    assert below.instances == (Instance("blog", "blog", "blog"),)
    assert "../docs is outside of this folder" in below.because


def test_a_wordpress_export_file_is_told(make_site: MakeSite) -> None:
    wxr = (Path(__file__).parents[1] / "data" / "sites" / "wordpress.xml").read_bytes()
    found = detect(str(make_site("wordpress", {"e.xml": wxr}).source_path / "e.xml"))
    assert found is not None and found.kind == "wordpress"


def test_the_pages_are_shown_before_anything_is_written(
    make_site: MakeSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = make_site("markdown", {"a.md": "Text", "b.md": "---\ndraft: true\n---\nsecret"})
    toml = sites(tmp_path) / "source" / "site.toml"

    def ask(question: str) -> str:
        shown = capsys.readouterr().out
        assert "1 of 2 pages exported" in shown
        assert "left out, draft: 1" in shown
        assert "https://example.org/a " in shown
        assert not toml.exists()
        assert str(toml) in question
        return "n"

    argv = [
        site.source,
        "--collection",
        "docs",
        "--base-url",
        "https://example.org",
        "--sites",
        str(tmp_path / "sites"),
    ]
    assert main(argv, ask) == 1
    assert not toml.parent.exists()
    assert main(argv, lambda _: "y") == 0
    assert tomllib.loads(toml.read_text(encoding="utf-8"))["base_url"] == "https://example.org/"


def test_of_a_large_site_the_first_of_each_are_shown(
    make_site: MakeSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = make_site("markdown", {f"{name}{n:02}.md": "Text" for name in ("a", "_b") for n in range(13)})
    argv = [site.source, "--collection", "docs", "--base-url", "https://example.org"]
    assert main([*argv, "--sites", str(sites(tmp_path))], lambda _: "n") == 1
    shown = capsys.readouterr().out
    assert "a09.md" not in shown and "https://example.org/a09" in shown and "/a10" not in shown
    assert "  … and 3 more pages" in shown
    assert "    _b09.md\n    … and 3 more\n" in shown


def test_pages_in_several_languages_are_told_in_one_line(
    make_site: MakeSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {f"{lang}/{n}.md": f"---\nlang: {lang}\n---\nText" for lang in ("de", "en") for n in range(2)}
    argv = [make_site("markdown", files).source, "--collection", "docs", "--base-url", "https://example.org"]
    assert main([*argv, "--sites", str(sites(tmp_path))], lambda _: "n") == 1
    (told,) = [line for line in capsys.readouterr().out.splitlines() if " languages: " in line]
    assert told.startswith("  pages in 2 languages: de 2, en 2; ") and 'language = "en"' in told


def test_no_answer_is_no(make_site: MakeSite, tmp_path: Path) -> None:
    def end_of_input(_: str) -> str:
        raise EOFError

    site = make_site("markdown", {"a.md": "Text"})
    folder = sites(tmp_path)
    argv = [site.source, "--collection", "docs", "--base-url", "https://example.org", "--sites", str(folder)]
    assert main(argv, end_of_input) == 1
    assert list(folder.iterdir()) == [folder / "collections.toml"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--base-url", "example.org", "--collection", "docs"], "is not an http(s) address"),
        (["--base-url", "https://example.org/#a", "--collection", "docs"], "has more than host and path"),
        (
            ["--base-url", "https://example.org", "--collection", "docs", "--name", "../x"],
            "cannot name a site",
        ),
        (["--kind", "url"], "not an address, and kind 'url' takes one"),
        (["--kind", "docusaurus"], "no docusaurus.config.* with docs or a blog"),
    ],
)
def test_what_is_wrong_is_one_clear_sentence(
    argv: list[str], message: str, make_site: MakeSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = make_site("markdown", {"a.md": "Text"})
    assert main([site.source, "--sites", str(sites(tmp_path)), *argv], never_asked) == 2
    error = capsys.readouterr().err
    assert error.startswith("ralph: ")
    assert message in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("files", "argv", "missing"),
    [
        (
            {},
            [],
            ["--base-url: nothing here says", "--collection: none is named; there are: docs (The docs)"],
        ),
        (
            {},
            ["--collection", "docs", "--name", "new", "--kind", "markdown"],
            ["--base-url: nothing here says"],
        ),
        ({"CNAME": "example.org"}, ["--yes"], ["--collection: none is named"]),
        (
            {},
            ["--base-url", "https://example.org/a b", "--collection", "other"],
            ["--collection: 'other' is none"],
        ),
    ],
)
def test_all_that_is_missing_is_said_at_once_with_a_command_line_to_copy(
    files: dict[str, str],
    argv: list[str],
    missing: list[str],
    make_site: MakeSite,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    site = make_site("markdown", {"a.md": "Text", **files})
    given = [site.source, *argv, "--sites", str(sites(tmp_path))]
    assert main(given, never_asked) == 2
    first, *lines, example = capsys.readouterr().err.splitlines()
    assert first == "ralph: more is needed to add it"
    assert [
        line for line, start in zip(lines, missing, strict=True) if not line.startswith(f"  {start}")
    ] == []
    _, command, *copied = shlex.split(example.removeprefix("  For example: "))
    assert command == "add"
    url = argv[1] if "--base-url" in argv else "https://example.org/"
    assert (copied[0], copied[copied.index("--base-url") + 1]) == (site.source, url)
    copied[copied.index(url)] = "https://example.org/"
    assert main(copied, lambda _: "y") == 0
    name = "new" if "--name" in argv else "source"
    assert isinstance(load_site(tmp_path / "sites" / name / "site.toml", {"docs": DOCS}, {}), Site)


def test_the_command_line_to_copy_names_a_sample_last(
    make_site: MakeSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site, folder = make_site("markdown", {"a.md": "Text"}), sites(tmp_path)
    toml = folder / "collections.toml"
    toml.write_text(f"[demo]\npublic = true\nsample = true\n{toml.read_text()}")
    assert main([site.source, "--sites", str(folder)], never_asked) == 2
    assert "--collection docs" in capsys.readouterr().err
    toml.write_text("")
    assert main([site.source, "--sites", str(folder)], never_asked) == 2
    error = capsys.readouterr().err
    assert "there are: none yet. Another one is first written into" in error
    assert "--collection NAME" in error


def test_a_docusaurus_checkout_without_docs_is_said_to_have_none(
    make_site: MakeSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = make_site("docusaurus", {"docusaurus.config.js": "url: 'https://example.org'\n", "a.md": "Text"})
    assert main([site.source, "--collection", "docs", "--sites", str(sites(tmp_path))], never_asked) == 2
    assert "no docusaurus.config.* with docs or a blog" in capsys.readouterr().err


def test_a_source_without_a_public_page_is_said_to_have_none(
    make_site: MakeSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site, folder = (
        make_site("markdown", {"a.md": "---\ndraft: true\n---\nText", "CNAME": "example.org"}),
        sites(tmp_path),
    )
    assert main([site.source, "--collection", "docs", "--sites", str(folder)], never_asked) == 2
    assert (
        capsys.readouterr().err
        == f"ralph: nothing of {site.source} would be published; no site.toml was written\n"
    )


def test_a_single_page_is_no_site(
    make_site: MakeSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = make_site("markdown", {"a.md": "Text"}).source_path / "a.md"
    argv = [str(page), "--collection", "docs", "--base-url", "https://example.org"]
    argv += ["--sites", str(sites(tmp_path))]
    assert main(argv, never_asked) == 2
    assert "not a WordPress export (.xml); give one, a folder or an address" in capsys.readouterr().err
    assert main([*argv, "--kind", "markdown"], never_asked) == 2
    assert "not a folder, and kind 'markdown' takes one" in capsys.readouterr().err


def test_a_wordpress_export_says_itself_where_it_is_published(tmp_path: Path) -> None:
    wxr = tmp_path / "choir.xml"
    wxr.write_text(
        '<rss xmlns:wp="http://wordpress.org/export/1.2/"><channel><title>Choir</title>'
        "<link>https://choir.example.org</link></channel></rss>"
    )
    found = detect(str(wxr))
    assert found is not None
    assert (found.kind, found.base_url) == ("wordpress", "https://choir.example.org")


def test_a_site_that_is_there_already_is_not_written_over(make_site: MakeSite, tmp_path: Path) -> None:
    site = make_site("markdown", {"a.md": "Text"})
    toml = sites(tmp_path) / "here" / "site.toml"
    toml.parent.mkdir()
    toml.write_text("mine")
    argv = [site.source, "--collection", "docs", "--base-url", "https://example.org", "--name", "here"]
    assert main([*argv, "--sites", str(tmp_path / "sites"), "--yes"], never_asked) == 2
    assert toml.read_text() == "mine"


def test_what_the_disk_refuses_is_one_sentence(
    make_site: MakeSite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site, folder = make_site("markdown", {"a.md": "Text", "CNAME": "example.org"}), sites(tmp_path)
    (folder / "file").touch()
    argv = ["--collection", "docs", "--name", "file", "--sites", str(folder), "--yes"]
    assert main([site.source, *argv], never_asked) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"ralph: {folder / 'file' / 'site.toml'}: cannot be written (File exists); ")
    config = site.source_path / "docusaurus.config.js"
    config.mkdir()
    assert main([site.source, *argv], never_asked) == 2
    assert capsys.readouterr().err == f"ralph: {config}: cannot be read (Is a directory); allow it\n"


@pytest.mark.parametrize("source", ["/nowhere/at/all", "ftp://example.org/", "."])
def test_a_source_that_holds_no_site_is_an_error(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    assert main([source, "--collection", "docs", "--sites", str(sites(tmp_path))], never_asked) == 2

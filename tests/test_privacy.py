"""What is not published is in nothing that a build makes, from a site's files to rag.db."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from handler.bundle.encoder import Encoder
from handler.bundle.passage import passage_text
from handler.bundle.reader import Index
from handler.bundle.search import search
from pipeline.chunk import chunk_pages, read_chunks, write_chunks
from pipeline.embed import embed_passages, write_vectors
from pipeline.export.exporters import export
from pipeline.export.pages import read_pages, write_export
from pipeline.index import title_texts, write_index
from pipeline.site import Instance, Site, SiteKind
from pipeline.vector_cache import open_cache

TODAY = date(2026, 1, 1)

# Stands in every private text below, in no public one, and in several spellings on disk.
SECRET = "xylophone"
TRACES = (SECRET.encode(), SECRET.encode("utf-16-le"), SECRET.encode("utf-16-be"), b"xylophon")

PUBLIC = "---\ntitle: Pond\n---\n# Pond\n\nAlgae grow in warm water.\n"
PRIVATE_MARKDOWN = {
    "draft.md": "---\ntitle: {0}\ndraft: true\n---\n# {0}\n\n{0}\n",
    "yes.md": "---\nprivate: 'yes'\n---\n{0}\n",
    "unlisted.md": "---\nUnlisted: on\n---\n{0}\n",
    "published.md": "---\npublished: 'False'\n---\n{0}\n",
    "twice.md": "---\ndraft: false\ndraft: true\n---\n{0}\n",
    "broken.md": "---\ntitle: A: {0}\ndraft: true\n---\n{0}\n",
    "tab.md": "---\ntitle: A\n\tdraft: true\n---\n{0}\n",
    "merged.md": "---\nbase: &base\n  draft: true\n<<: *base\n---\n{0}\n",
    "unclosed.md": "---\ntitle: A\ndraft: true\n\n{0}\n",
    "toml.md": '+++\ntitle = "{0}"\ndraft = true\n+++\n{0}\n',
    "json.md": '{{"title": "{0}", "draft": true}}\n{0}\n',
    "indented.md": " ---\ndraft: true\n ---\n{0}\n",
    "_partial.md": "---\ntitle: x\n---\n{0}\n",
    "left-out/page.md": "---\ntitle: x\n---\n{0}\n",
}
WXR_ITEM = (
    "<item><title>{title}</title><link>https://old.example/{title}/</link><wp:post_name>{title}</wp:post_name>"
    "<content:encoded><![CDATA[<p>{text}</p><!-- {hidden} -->]]></content:encoded>"
    "<wp:status>{status}</wp:status><wp:post_type>{kind}</wp:post_type><wp:post_password>{password}</wp:post_password>"
    "<wp:comment><wp:comment_content>{hidden}</wp:comment_content></wp:comment></item>"
)
WXR = (
    '<rss xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:wp="http://wordpress.org/export/1.2/">'
    "<channel>{0}</channel></rss>"
)


class Build:
    """The stages one after another, into one folder."""

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        self.folder = folder
        self.encoder = encoder

    def run(self, site: Site) -> Index:
        pages_dir, chunks_path = self.folder / "pages", self.folder / "chunks.jsonl"
        write_export(export(site, TODAY), pages_dir)
        spec = self.encoder.spec
        pages = read_pages(pages_dir, site.name)
        write_chunks(chunk_pages(pages, self.encoder.count_tokens, spec.max_tokens), chunks_path)
        chunks = read_chunks(chunks_path)
        with open_cache(self.folder / "cache.db") as cache:
            texts = [passage_text(chunk.title, chunk.heading, chunk.text) for chunk in chunks]
            vectors = embed_passages(texts, self.encoder, cache)
            titles = embed_passages(title_texts(chunks), self.encoder, cache)
        write_vectors(vectors, self.folder / "vectors.npy")
        write_index(self.folder / "rag.db", chunks, vectors, titles, spec)
        return Index.open(self.folder / "rag.db")

    def traces(self) -> list[str]:
        """The files that hold the secret in any spelling."""
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        assert len(files) > 4
        return [path.name for path in files if any(trace in path.read_bytes().lower() for trace in TRACES)]


@pytest.fixture
def build(tmp_path: Path, tiny_encoder: Encoder) -> Build:
    return Build(tmp_path / "build", tiny_encoder)


def make_site(folder: Path, kind: SiteKind, files: Mapping[str, str | bytes], **keys: Any) -> Site:
    for name, content in files.items():
        path = folder / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    values: dict[str, Any] = {
        "name": "garden",
        "kind": kind,
        "source": str(folder / "source"),
        "base_url": "https://example.org/",
        "collection": "garden",
        "folder": folder,
        "exclude": ("left-out/",),
        "instances": (Instance("docs", "content", ""),),
    }
    return Site(**(values | keys))


def found(index: Index, encoder: Encoder, question: str) -> list[str]:
    return [hit.chunk.url for hit in search(index, encoder, question).hits]


@pytest.mark.parametrize("kind", ["markdown", "docusaurus", "hugo", "jekyll", "zola", "wordpress"])
def test_nothing_of_private_pages_is_built_from_any_kind_of_markdown(
    kind: SiteKind, build: Build, tmp_path: Path
) -> None:
    files = {f"content/{name}": text.format(SECRET) for name, text in PRIVATE_MARKDOWN.items()}
    site = make_site(tmp_path, kind, {**files, "content/pond.md": PUBLIC})
    index = build.run(site)
    assert len(index.page_number_by_url) == 1
    assert build.traces() == []


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_nothing_of_a_draft_is_built_in_any_encoding(
    encoding: str, newline: str, build: Build, tmp_path: Path
) -> None:
    draft = PRIVATE_MARKDOWN["draft.md"].format(SECRET).replace("\n", newline).encode(encoding)
    build.run(make_site(tmp_path, "markdown", {"draft.md": draft, "pond.md": PUBLIC}))
    assert build.traces() == []


@pytest.mark.parametrize(
    "hidden",
    [
        "<!-- {0} -->",
        "{{/* {0} */}}",
        "{{\n  /* {0} */\n}}",
        'import Part from "./_{0}.mdx"\n\n<Part about="{0}" />',
        "export const hidden = {{\n  text: `{0}`,\n}}",
    ],
)
def test_nothing_that_a_page_of_mdx_hides_is_built(hidden: str, build: Build, tmp_path: Path) -> None:
    files = {
        "content/pond.mdx": f"{PUBLIC}\n{hidden.format(SECRET)}\n\nFrogs.\n",
        "content/_part.mdx": f"{SECRET}\n",
    }
    index = build.run(make_site(tmp_path, "docusaurus", files))
    assert build.traces() == []
    assert found(index, build.encoder, "frogs") == ["https://example.org/pond"]


@pytest.mark.parametrize(
    ("kind", "name"), [("hugo", "content/ahead.md"), ("jekyll", "_posts/2026-01-02-ahead.md")]
)
def test_nothing_of_a_post_dated_ahead_is_built(
    kind: SiteKind, name: str, build: Build, tmp_path: Path
) -> None:
    files = {name: f"---\ndate: 2026-01-02\n---\n{SECRET}\n", "content/pond.md": PUBLIC}
    index = build.run(make_site(tmp_path, kind, files))
    assert len(index.page_number_by_url) == 1
    assert build.traces() == []


def test_nothing_of_private_posts_is_built_from_a_wordpress_export(build: Build, tmp_path: Path) -> None:
    private = [(status, "post", "") for status in ("draft", "private", "pending", "future", "trash", "")]
    private += [("inherit", "revision", ""), ("inherit", "attachment", ""), ("publish", "post", "abc")]
    items = [
        WXR_ITEM.format(title=f"a{i}", text=SECRET, hidden="", status=status, kind=kind, password=password)
        for i, (status, kind, password) in enumerate(private)
    ]
    shown = f"Algae. [private]{SECRET}[/private]"
    items.append(
        WXR_ITEM.format(title="pond", text=shown, hidden=SECRET, status="publish", kind="page", password="")
    )
    site = make_site(
        tmp_path,
        "wordpress",
        {"wp.xml": WXR.format("".join(items))},
        source=str(tmp_path / "source" / "wp.xml"),
    )
    assert list(build.run(site).page_number_by_url) == ["https://example.org/pond/"]
    assert build.traces() == []


def test_nothing_of_a_hidden_part_of_html_is_built(build: Build, tmp_path: Path) -> None:
    hidden = (
        f"<!-- {SECRET} --><p hidden>{SECRET}</p><template>{SECRET}</template><script>{SECRET}</script>"
        f"<div aria-hidden='true'>{SECRET}</div><input value='{SECRET}'>"
    )
    page = "<title>{0}</title>{1}<main><h1>{0}</h1><p>{2}</p>{3}</main>"
    files = {
        "pond.html": page.format("Pond", "", "Algae grow in warm water.", hidden),
        "secret.html": page.format(SECRET, '<meta name="robots" content="noindex">', SECRET, ""),
        "left-out/page.html": page.format(SECRET, "", SECRET, ""),
    }
    assert len(build.run(make_site(tmp_path, "html", files)).page_number_by_url) == 1
    assert build.traces() == []


def test_nothing_of_a_file_behind_a_link_out_of_the_source_is_built(build: Build, tmp_path: Path) -> None:
    site = make_site(tmp_path, "markdown", {"pond.md": PUBLIC})
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.md").write_text(SECRET)
    (site.source_path / "file.md").symlink_to(tmp_path / "outside" / "a.md")
    (site.source_path / "folder").symlink_to(tmp_path / "outside")
    build.run(site)
    assert build.traces() == []


def test_nothing_is_left_of_a_page_that_becomes_a_draft(build: Build, tmp_path: Path) -> None:
    shown = f"---\ntitle: {SECRET}\n---\n# {SECRET}\n\n{SECRET}\n"
    index = build.run(make_site(tmp_path, "markdown", {"pond.md": PUBLIC, "deep/a.md": shown}))
    assert set(found(index, build.encoder, SECRET)) > {"https://example.org/deep/a"}
    assert build.traces()
    draft = shown.replace("---\ntitle", "---\ndraft: true\ntitle", 1)
    index = build.run(make_site(tmp_path, "markdown", {"deep/a.md": draft}))
    assert list(index.page_number_by_url) == ["https://example.org/pond"]
    assert build.traces() == []

"""Bundles for tests: real ones, through the real stages, with a tiny model in place of the large one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from handler.bundle.encoder import Encoder, ModelSpec, Vector
from handler.bundle.gate import N_EVIDENCE, Gate
from handler.bundle.manifest import CollectionSummary, Manifest, Probe, SiteSummary
from handler.bundle.passage import passage_text
from handler.bundle.types import Chunk
from pipeline.chunk import chunk_pages
from pipeline.embed import embed_passages
from pipeline.index import title_texts, write_index
from pipeline.model import read_spec
from pipeline.page import Page
from pipeline.seal import seal
from pipeline.vector_cache import open_cache

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# What the person who runs the tests has set for their own builds is not what the tests are about.
for name in [name for name in os.environ if name.startswith(("DAVO_", "EMBED_", "RAG_", "RALPH_"))]:
    if name not in ("RALPH_MODELS", "RALPH_CORPORA", "RALPH_DATA"):
        del os.environ[name]

MODEL = Path(__file__).parent / "data" / "model"
CHROMIUM = Path("/usr/bin/chromium")

# What stands on the pages, by "collection/path"; each page's first line is its title.
Pages = Mapping[str, str]
MakeBundle = Callable[..., Path]

PAGES: Pages = {
    "notes/garden.md": "Garden\n\nTomatoes want sun and water.\n\n## Pond\n\nThe pond has algae in summer.\n",
    "notes/music.md": "Music\n\nThe piano is in the studio. A song was recorded in July.\n",
    "notes/server.md": "Server\n\nThe server runs nginx. Restart the server with systemctl.\n",
    "diary/secret.md": "Diary\n\nThe secret diary is about the garden and the server.\n",
}


def pytest_configure() -> None:
    # A shell starts what runs in its background with Ctrl-C ignored, and every process that a test starts and
    # interrupts would ignore it, too.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# A module's and not the session's: as long as it runs, Playwright's event loop counts as running in this
# thread, and asyncio.run in other tests would refuse.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's chromium."""
    from playwright.sync_api import sync_playwright  # slow, and few tests need it

    if not CHROMIUM.exists():
        pytest.skip("needs Debian's chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def tiny_spec() -> ModelSpec:
    """The spec of the tiny model."""
    return read_spec(MODEL)


@pytest.fixture(scope="session")
def tiny_encoder(tiny_spec: ModelSpec) -> Encoder:
    """The tiny model, loaded once."""
    return Encoder.load(MODEL, tiny_spec)


@pytest.fixture
def make_bundle(tmp_path: Path, tiny_encoder: Encoder) -> MakeBundle:
    """Seals a bundle of some pages and returns its folder; collection `diary` is not public."""
    return _maker(tmp_path, tiny_encoder)


@pytest.fixture(scope="session")
def sample_bundle(tmp_path_factory: pytest.TempPathFactory, tiny_encoder: Encoder) -> Path:
    """The folder of a bundle of PAGES, for tests that change nothing in it."""
    return _maker(tmp_path_factory.mktemp("sample"), tiny_encoder)()


def _maker(tmp_path: Path, tiny_encoder: Encoder) -> MakeBundle:
    def make(
        pages: Pages = PAGES, gate: Gate | None = None, evaluation: Mapping[str, object] | None = None
    ) -> Path:
        chunks = sorted(
            chunk_pages(map(_page, pages.items()), tiny_encoder.count_tokens, tiny_encoder.spec.max_tokens),
            key=lambda chunk: (chunk.collection, chunk.path, chunk.ordinal),
        )
        texts = [passage_text(chunk.title, chunk.heading, chunk.text) for chunk in chunks]
        with open_cache(tmp_path / "cache.db") as cache:
            vectors = embed_passages(texts, tiny_encoder, cache)
        titles = title_vectors(tiny_encoder, chunks)
        write_index(tmp_path / "rag.db", chunks, vectors, titles, tiny_encoder.spec)
        names = sorted({chunk.collection for chunk in chunks})
        manifest = Manifest(
            version="",
            model=tiny_encoder.spec.to_dict(),
            chunker={},
            collections={
                name: CollectionSummary(
                    title=name.title(),
                    public=name != "diary",
                    n_pages=sum(path.startswith(f"{name}/") for path in pages),
                    n_chunks=sum(chunk.collection == name for chunk in chunks),
                )
                for name in names
            },
            sites={name: SiteSummary(name, len(pages)) for name in names},
            gate=(gate or Gate(threshold=-1.0, weights=(0.0,) * N_EVIDENCE)).to_dict(),
            evaluation=evaluation or {},
            probe=Probe("garden", tiny_encoder.embed_query("garden")),
        )
        return seal(
            manifest, tmp_path / "rag.db", MODEL / "model.onnx", MODEL / "tokenizer.json", tmp_path / "build"
        )

    return make


def title_vectors(encoder: Encoder, chunks: Iterable[Chunk]) -> Vector:
    """The vectors of the titles of the chunks' pages, as an index takes them."""
    vectors = [encoder.embed_passage(text) for text in title_texts(chunks)]
    return np.array(vectors, np.float32).reshape(-1, encoder.spec.dim)


def _page(item: tuple[str, str]) -> Page:
    name, text = item
    collection, path = name.split("/", 1)
    title, _, body = text.partition("\n")
    return Page(
        site=collection,
        collection=collection,
        path=path,
        url=f"https://example.org/{collection}/{path.removesuffix('.md')}",
        title=title,
        description="",
        body=body,
        anchor_style="github",
        sha256="",
    )

"""The index stage: chunks and their vectors become a new rag.db."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import apsw

from handler.bundle.counted import counted
from handler.bundle.database import create_database, insert_chunk, insert_keywords, insert_page
from handler.bundle.encoder import ModelSpec, Vector, check_unit
from handler.bundle.links import definitions_by_page
from handler.bundle.passage import title_text
from handler.bundle.types import BundleError, Chunk
from pipeline.progress import Progress, no_progress


def write_index(
    path: Path,
    chunks: Sequence[Chunk],
    vectors: Vector,
    title_vectors: Vector,
    model: ModelSpec,
    progress: Progress = no_progress,
) -> None:
    """Writes rag.db: always a new file, and byte-equal for equal chunks, vectors and model.

    `vectors` is (n, dim) float32 with unit rows, row i for chunk i, and `title_vectors` has a row for each of
    `title_texts`. The order of the chunks does not matter. Raises BundleError when vectors and chunks do
    not fit each other or the model.
    """
    titles = title_texts(chunks)
    for of, found, what in ((chunks, vectors, "chunk"), (titles, title_vectors, "title")):
        if len(found) != len(of):
            raise BundleError(f"{counted(len(of), what)} with {counted(len(found), 'vector')}")
        check_unit(found, model)
    vector_of_title = dict(zip(titles, title_vectors, strict=True))
    order = sorted(range(len(chunks)), key=lambda i: _place(chunks[i]))
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.unfinished")
    connection = create_database(unfinished, model.dim)
    try:
        with connection:
            connection.execute("INSERT INTO meta VALUES ('model', ?)", (model.fingerprint,))
            ordered = [chunks[i] for i in order]
            page_ids = _insert_pages(connection, ordered, vector_of_title)
            definitions = definitions_by_page((chunk.url, chunk.text) for chunk in ordered)
            for chunk_id, i in enumerate(progress(order, len(order)), start=1):
                insert_chunk(connection, chunk_id, page_ids[chunks[i].url], chunks[i], vectors[i])
                insert_keywords(connection, chunk_id, chunks[i], definitions.get(chunks[i].url, {}))
        # One segment and no free pages: the smallest file, and the quickest keyword lists.
        connection.execute("INSERT INTO chunk_fts(chunk_fts) VALUES ('optimize')")
        connection.execute("VACUUM")
    finally:
        connection.close()
    unfinished.replace(path)


def title_texts(chunks: Iterable[Chunk]) -> list[str]:
    """What is to be embedded of the titles of the chunks' pages, each text once, sorted."""
    return sorted({title_text(chunk.title) for chunk in chunks})


def _place(chunk: Chunk) -> tuple[str, str, str, int]:
    return (chunk.collection, chunk.path, chunk.url, chunk.ordinal)


def _insert_pages(
    connection: apsw.Connection, chunks: Sequence[Chunk], vector_of_title: Mapping[str, Vector]
) -> dict[str, int]:
    """The pages' ids by URL. Of pages with one text, the one with the shortest URL is canonical."""
    pages = {url: list(group) for url, group in groupby(chunks, key=lambda chunk: chunk.url)}
    ids = {url: page_id for page_id, url in enumerate(pages, start=1)}
    canonical: dict[tuple[str, ...], str] = {}
    texts = {url: tuple(" ".join(chunk.text.split()) for chunk in group) for url, group in pages.items()}
    for url in sorted(pages, key=lambda url: (len(url), url)):
        canonical.setdefault(texts[url], url)
    for url, (first, *_) in pages.items():
        title_vector = vector_of_title[title_text(first.title)]
        insert_page(connection, ids[url], ids[canonical[texts[url]]], first, title_vector)
    return ids

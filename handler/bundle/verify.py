"""Everything that can be checked of a bundle without knowing what it was built from."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import apsw

from handler.bundle.bundle import Bundle
from handler.bundle.counted import counted
from handler.bundle.database import create_tables, insert_keywords, open_database
from handler.bundle.encoder import ModelSpec, check_unit
from handler.bundle.layout import DATABASE
from handler.bundle.links import definitions_by_page
from handler.bundle.manifest import Manifest, check_format, read_manifest
from handler.bundle.probe import check_probe
from handler.bundle.reader import Index
from handler.bundle.sums import check_sums, content_version
from handler.bundle.types import BundleError


def verify(bundle: Path) -> Iterator[str]:
    """Runs every check of a bundle and yields what held, one line a check, as soon as it did.

    Raises BundleError at the first check that does not hold.
    """
    manifest = read_manifest(bundle)
    check_format(manifest, bundle)
    check_sums(bundle)
    if content_version(bundle, manifest) != manifest.version:
        raise BundleError(f"{bundle} is damaged: its content is not that of version {manifest.version}")
    yield f"files: every digest holds, format {manifest.format_version}, version {manifest.version}"

    spec = ModelSpec.from_dict(manifest.model)
    connection = open_database(bundle / DATABASE)
    expected = apsw.Connection(":memory:")
    create_tables(expected, spec.dim)
    try:
        _check_schema(connection, expected)
        yield "schema: the one that this program writes"
        yield f"counts: {_check_counts(connection, manifest)}"
        index = Index.open(bundle / DATABASE)
        _check_keywords(index, connection, expected)
    except (apsw.Error, ValueError) as error:  # SQLite, or the JSON of a heading
        raise BundleError(f"{DATABASE} is damaged: {error}") from error
    yield "keywords: every word of every chunk, in its place"
    if len(index):
        check_unit(index.vectors, spec)
        check_unit(index.title_vectors, spec)
    yield f"vectors: {len(index)} of {spec.dim} dimensions, unit length"

    encoder = Bundle.open(bundle).encoder  # with all that a server checks at its start
    cosine = check_probe(encoder, manifest.probe)
    yield f"model: {spec.name}, a cosine of {cosine:.4f} to the vector of the building machine"


def _check_schema(connection: apsw.Connection, expected: apsw.Connection) -> None:
    """SQLite's own check, FTS5's with it, then the tables against new ones."""
    problems = [row for (row,) in connection.execute("PRAGMA integrity_check") if row != "ok"]
    if problems:
        raise BundleError(f"{DATABASE} is damaged: {problems[0]}")
    sql = "SELECT name, sql FROM sqlite_schema ORDER BY name"
    for found, wanted in zip_longest(connection.execute(sql), expected.execute(sql)):
        if found != wanted:
            raise BundleError(f"{DATABASE} has another schema: {(found or wanted)[0]}")


def _check_counts(connection: apsw.Connection, manifest: Manifest) -> str:
    sql = """
        SELECT collection, count(DISTINCT page.id), count(chunk.id)
        FROM page LEFT JOIN chunk ON chunk.page = page.id GROUP BY collection
    """
    found = {name: (n_pages, n_chunks) for name, n_pages, n_chunks in connection.execute(sql)}
    listed = {name: (row.n_pages, row.n_chunks) for name, row in manifest.collections.items()}
    if found != listed:
        raise BundleError(
            f"{DATABASE} has collections with (pages, chunks) {found}; the manifest says {listed}"
        )
    return ", ".join(
        f"{name} {counted(n_pages, 'page')}, {counted(n_chunks, 'chunk')}"
        for name, (n_pages, n_chunks) in found.items()
    )


def _check_keywords(index: Index, connection: apsw.Connection, expected: apsw.Connection) -> None:
    """Every word and its place in the keyword index against the chunks, folded and indexed again.

    An FTS5 table without content of its own cannot notice that it is out of step: SQLite's check says ok.
    """
    chunks = index.chunks(range(len(index)))
    definitions = definitions_by_page((chunk.url, chunk.text) for chunk in chunks)
    with expected:
        for chunk_id, chunk in enumerate(chunks, start=1):
            insert_keywords(expected, chunk_id, chunk, definitions.get(chunk.url, {}))
    sql = "SELECT term, doc, col, offset FROM temp.words"
    for each in (connection, expected):
        each.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, chunk_fts, instance)")
    for found, wanted in zip_longest(connection.execute(sql), expected.execute(sql)):
        if found != wanted:
            term, chunk_id, *_ = min(row for row in (found, wanted) if row)
            raise BundleError(f"{DATABASE}: the keyword index is out of step at {term!r} in chunk {chunk_id}")

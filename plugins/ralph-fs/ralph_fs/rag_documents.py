"""Files of the allowed folders into the local index, what is in it, and out of it again."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path

from handler.bundle.manifest import read_manifest
from pipeline.ingest import (
    MAX_FILE_BYTES,
    SUFFIXES,
    Outcome,
    SourceFile,
    find_collection,
    ingest,
    take_out_gone,
)
from pipeline.local_index import LocalIndex, open_local_index
from pipeline.site import SiteError
from ralph_fs.opening import open_file, read_at
from ralph_fs.rag_corpus import Corpus
from ralph_fs.refusal import RefusedError, shown
from ralph_fs.roots import Place
from ralph_fs.walking import Entry, Walk

# At twenty chunks a second, which a laptop embeds, they take an hour.
MAX_FILES = 10_000
MAX_LINES = 200
NO_COLLECTION = "(no collection)"

# Called with how many files are done, of how many.
Report = Callable[[int, int], None]
# Called every now and then; raises something when the call was cancelled.
Check = Callable[[], None]


def ingest_file(corpus: Corpus, place: Place, collection: str, check: Check) -> str:
    """Puts one file in, and says what came of it. Raises RefusedError."""
    if not _is_text(place.shown):
        raise RefusedError(f"{shown(place.shown)}: only {', '.join(SUFFIXES)} files can be ingested")
    (outcome,) = _ingest(corpus, [place], collection, dry_run=False, check=check)
    if outcome.kind == "refused":
        raise RefusedError(shown(str(outcome)))
    return shown(str(outcome))


def ingest_folder(
    corpus: Corpus, place: Place, collection: str, *, dry_run: bool, check: Check, report: Report
) -> str:
    """Puts the files beneath a folder in and takes out what is gone; says which. Raises RefusedError."""
    walk = Walk(place, enters=lambda entry: not _is_hidden(entry))
    found = (entry for entry in walk if entry.kind == "file" and not _is_hidden(entry))
    places = [place.beneath(*entry.names) for entry in found if _is_text(entry.names[-1])]
    notes = [note for note in (walk.note(),) if note]
    if len(places) > MAX_FILES:
        notes.append(f"the first {MAX_FILES:,} of {len(places):,} files; name smaller folders for the rest")
    outcomes = _ingest(
        corpus, places[:MAX_FILES], collection, folder=place, dry_run=dry_run, check=check, report=report
    )
    counts = Counter(outcome.kind for outcome in outcomes)
    counted = ", ".join(f"{n:,} {kind}" for kind, n in sorted(counts.items())) or "no files to ingest"
    done = "; a dry run, nothing was changed" if dry_run else ""
    # What needs a look comes first.
    news = [outcome for outcome in outcomes if outcome.kind != "unchanged"]
    news.sort(key=lambda outcome: outcome.kind != "refused")
    lines = _first_lines([shown(str(outcome)) for outcome in news])
    n_chunks = sum(outcome.n_chunks for outcome in outcomes)
    return "\n".join([f"{counted}; {n_chunks:,} chunks{done}", *lines, *(f"[{note}]" for note in notes)])


def list_documents(corpus: Corpus, collection: str) -> str:
    """The files of the local index, and how much the bundle has, by collection. Raises RefusedError."""
    wanted = "" if collection == NO_COLLECTION else collection or None
    settings = corpus.settings
    lines = []
    with corpus.refusing():
        if settings.bundle.exists():
            bundled = sorted(read_manifest(settings.bundle).collections.items())
            lines += [
                f"{name}: the bundle's {summary.n_pages:,} pages, {summary.n_chunks:,} chunks"
                for name, summary in bundled
                if wanted in (None, name)
            ]
        if settings.database.exists():
            with open_local_index(settings.database, None) as index:
                lines += _first_lines(_listed(corpus, index, wanted))
    return "\n".join(lines) or "Nothing is indexed."


def delete_document(corpus: Corpus, path: str) -> str:
    """Takes a file out of the local index, by its path or its address. Raises RefusedError."""
    with corpus.refusing(), open_local_index(corpus.settings.database, None) as index:
        try:
            n_chunks = index.delete(corpus.location(path))
        except ValueError:  # a NUL or half a character, which no name in the index has
            n_chunks = 0
    if not n_chunks:
        raise RefusedError(f"{shown(path)}: was not ingested; rag_list_documents names what was")
    return f"{shown(path)}: {n_chunks:,} chunks taken out"


def _ingest(
    corpus: Corpus,
    places: Sequence[Place],
    collection: str,
    *,
    folder: Place | None = None,
    dry_run: bool,
    check: Check,
    report: Report = lambda *_: None,
) -> list[Outcome]:
    with corpus.refusing():
        name = find_collection(collection, corpus.settings.collections).name
        encoder = corpus.bundle().encoder
        files = [_source(place) for place in places]
        if dry_run and not corpus.settings.database.exists():
            outcomes = ingest(files, name, None, encoder, dry_run=True, check=check)
            return _reported(outcomes, len(files), report)
        with open_local_index(corpus.settings.database, encoder.spec) as index:
            gone = _gone(folder, files, index, dry_run=dry_run) if folder else []
            outcomes = ingest(files, name, index, encoder, dry_run=dry_run, check=check)
            return gone + _reported(outcomes, len(files), report)


def _gone(folder: Place, files: Sequence[SourceFile], index: LocalIndex, *, dry_run: bool) -> list[Outcome]:
    location = _location(folder)

    def name(gone: str) -> str:
        return folder.beneath(*Path(gone).relative_to(location).parts).shown

    return take_out_gone(location, files, index, name, dry_run=dry_run)


def _reported(outcomes: Generator[Outcome], total: int, report: Report) -> list[Outcome]:
    done = []
    with closing(outcomes):  # by what `report` raises when the call was cancelled
        for outcome in outcomes:
            done.append(outcome)
            report(len(done), total)
    return done


def _source(place: Place) -> SourceFile:
    return SourceFile(_location(place), place.shown, partial(_read, place))


def _location(place: Place) -> str:
    return os.path.realpath(os.path.join(place.root, *place.parts))  # noqa: PTH118


def _read(place: Place) -> bytes:
    try:
        with open_file(place) as (fd, _):
            return read_at(fd, 0, MAX_FILE_BYTES + 1)
    except RefusedError as refusal:
        raise SiteError(str(refusal).removeprefix(f"{shown(place.shown)}: ")) from None


def _is_hidden(entry: Entry) -> bool:
    return entry.names[-1].startswith(".")


def _is_text(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def _listed(corpus: Corpus, index: LocalIndex, collection: str | None) -> list[str]:
    return [
        f"{document.collection or NO_COLLECTION}: {shown(corpus.shown_address(document.url))}, "
        f"{document.n_chunks:,} chunks, {document.ingested_at or 'from a bundle'}"
        for document in index.documents(collection)
    ]


def _first_lines(lines: Iterable[str]) -> list[str]:
    """The lines, as many as one answer takes."""
    waiting = iter(lines)
    first = list(islice(waiting, MAX_LINES))
    n_more = sum(1 for _ in waiting)
    return [*first, f"[{n_more:,} more]"] if n_more else first

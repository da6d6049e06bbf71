"""Files of this machine into the local index: read, refused or chunked, embedded, and put in."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path
from threading import Event
from typing import Literal

import numpy as np

from handler.bundle.counted import counted
from handler.bundle.encoder import Encoder, ModelSpec, Vector
from handler.bundle.manifest import read_manifest
from handler.bundle.passage import passage_text, title_text
from handler.bundle.types import BundleError, Chunk
from pipeline import urls
from pipeline.chunk import MAX_CHARS, OVERLAP_CHARS, chunk_page
from pipeline.export.markdown import partial_reason
from pipeline.export.mdx import strip_mdx
from pipeline.export.prose import drop_comments
from pipeline.export.title import page_title
from pipeline.export.tree import anchor_style, read_draft, reason_to_hide, wide_encoding
from pipeline.frontmatter import FrontMatter, text_value
from pipeline.local_index import AddressTakenError, LocalIndex
from pipeline.page import Page
from pipeline.site import Collection, SiteError, load_collections
from pipeline.tokens import token_counter

SUFFIXES = (".md", ".mdx", ".txt")
# A book in one file has a tenth of it; more is a log or a dump, which nobody asks.
MAX_FILE_BYTES = 8 * 2**20
# Files in work at once, a worker: few, so that what was made is soon kept.
BATCH = 4
# How often somebody who may want to stop is asked.
CHECK_S = 0.2

Kind = Literal["new", "changed", "unchanged", "refused", "gone"]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that somebody wants to have in the index.

    `location` is its absolute path, `name` what it is called in answers. `read` returns its bytes, or the
    first MAX_FILE_BYTES + 1 of them, and raises SiteError, which says why, when it cannot.
    """

    location: str
    name: str
    read: Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a file: `n_chunks` were put in, or `note` says why it was refused.

    One that is gone is not on the disk any longer, and therefore not in the index.
    """

    name: str
    kind: Kind
    n_chunks: int = 0
    note: str = ""

    def __str__(self) -> str:
        n_chunks = f", {counted(self.n_chunks, 'chunk')}" if self.n_chunks else ""
        return f"{self.name}: {self.kind}{n_chunks}{f', {self.note}' if self.note else ''}"


def find_collection(name: str, folder: Path) -> Collection:
    """The collection of that name in a folder's collections.toml, the closed set. Raises SiteError."""
    collections = load_collections(folder)
    if name not in collections:
        listed = ", ".join(collections) or "none yet"
        raise SiteError(f"{name or 'no collection'}: name one that there is: {listed}")
    return collections[name]


def bundle_model(bundle: Path) -> ModelSpec:
    """The spec of a bundle's model, which is not loaded. Raises BundleError."""
    try:
        return ModelSpec.from_dict(read_manifest(bundle).model)
    except BundleError as error:
        raise BundleError(f"{error}; `doit build` makes a bundle, RALPH_BUNDLE names one") from None


def ingest(
    files: Iterable[SourceFile],
    collection: str,
    index: LocalIndex | None,
    encoder: Encoder,
    *,
    dry_run: bool = False,
    workers: int | None = None,
    check: Callable[[], None] = lambda: None,
) -> Generator[Outcome]:
    """Puts each file into a collection of the index, in place of what it had there, and says what came of it.

    A file that has not changed is passed over, one that became private is taken out. In a dry run nothing is
    embedded or changed; without an index every file is new to it. `workers` files are embedded side by side,
    as many as there are processors by default. Who stops early closes it, or raises something in `check`,
    which is called now and then. Raises BundleError when the index cannot be written.
    """
    count_tokens = token_counter(encoder)
    is_over = Event()

    def made(file: _Readable) -> _Made:
        chunks = chunk_page(file.page, count_tokens, encoder.spec.max_tokens)
        return _Made(file, chunks, [] if dry_run else _embed(file, chunks, encoder, is_over))

    n_workers = workers or os.cpu_count() or 1
    files = list(files)
    by_location = {file.location: file for file in files}
    waiting = iter(files)
    with ThreadPoolExecutor(n_workers) as pool, ExitStack() as stack:
        # The pool waits for its workers: they leave their files when nobody takes the outcomes any longer.
        stack.callback(pool.shutdown, wait=False, cancel_futures=True)
        stack.callback(is_over.set)
        while batch := list(islice(waiting, BATCH * n_workers)):
            read = [_read(file, collection, index, dry_run) for file in batch]
            # Nearly all of the time goes here, and no other process waits for it.
            ready = iter([pool.submit(made, file) for file in read if isinstance(file, _Readable)])
            for file in read:
                if isinstance(file, Outcome):
                    yield file
                else:
                    yield _keep(_awaited(next(ready), check), None if dry_run else index, by_location)


def take_out_gone(
    folder: str,
    files: Iterable[SourceFile],
    index: LocalIndex,
    name: Callable[[str], str],
    *,
    dry_run: bool = False,
) -> list[Outcome]:
    """Takes out what the index has from a folder and the disk has no longer, in whichever collection it is.

    `files` are those to ingest: of a folder that has none, a disk may be missing, and all stays. `name` says
    what the file of an absolute path is called in answers. In a dry run nothing is changed. Raises
    BundleError.
    """
    if not any(file.location.startswith(f"{folder.rstrip('/')}/") for file in files):
        return []
    gone = [location for location in index.locations(folder) if _is_gone(location)]
    if not dry_run:
        for location in gone:
            index.delete(location)
    return [Outcome(name(location), "gone") for location in gone]


def _is_gone(location: str) -> bool:
    try:
        os.lstat(location)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:  # in a folder that cannot be entered: who knows
        return False
    return False


@dataclass(frozen=True, slots=True)
class _Readable:
    """A file that has a page. `known` has the vectors that the index has of it, by what they were made of."""

    file: SourceFile
    page: Page
    digest: str
    is_new: bool
    known: Mapping[str, Vector]


@dataclass(frozen=True, slots=True)
class _Made:
    """A file's chunks, and the vectors of its title and of each of them, in a dry run none."""

    of: _Readable
    chunks: Sequence[Chunk]
    vectors: Sequence[Vector]


def _read(file: SourceFile, collection: str, index: LocalIndex | None, dry_run: bool) -> _Readable | Outcome:
    try:
        file.location.encode("utf-8")
        data = file.read()
    except UnicodeEncodeError:
        name = file.name.encode("utf-8", "backslashreplace").decode()
        return Outcome(name, "refused", note="its name is not UTF-8")
    except SiteError as error:
        return Outcome(file.name, "refused", note=str(error))
    if len(data) > MAX_FILE_BYTES:
        return Outcome(file.name, "refused", note=f"it has more than {MAX_FILE_BYTES >> 20} MB")
    digest = _digest(data, collection)
    known_digest = index.digest(file.location) if index else None
    if digest == known_digest:
        return Outcome(file.name, "unchanged")
    draft = read_draft(file.name, data, [])
    page = _page(draft.front, draft.sha256, file, collection)
    reason = reason_to_hide(draft) or partial_reason(file.name) or _binary_reason(data)
    if reason is None and page.body.strip():
        known = index.vectors(file.location) if index else {}
        return _Readable(file, page, digest, known_digest is None, known)
    if index and known_digest is not None and not dry_run:
        # What is private by now must not be found any longer.
        index.delete(file.location)
        reason = f"{reason or 'no text'}; what the index had of it is taken out"
    return Outcome(file.name, "refused", note=reason or "no text")


def _binary_reason(data: bytes) -> str | None:
    """Why these bytes are no text, or None: as for git, because of a NUL near the beginning."""
    return "binary" if b"\0" in data[:8000] and wide_encoding(data) is None else None


def _digest(data: bytes, collection: str) -> str:
    """The digest of all that decides what a file has in the index, but for the model."""
    return hashlib.sha256(f"{collection}\0{MAX_CHARS}\0{OVERLAP_CHARS}\0".encode() + data).hexdigest()


def _page(front: FrontMatter, sha256: str, file: SourceFile, collection: str) -> Page:
    """The page of a file. Its address is the one that its front matter has as `url`, else the file's own."""
    is_markdown = not file.name.lower().endswith(".txt")
    body = drop_comments(strip_mdx(front.body)) if is_markdown else front.body
    url = text_value(front.meta.get("url"))
    return Page(
        site="",
        collection=collection,
        path=file.location,
        url=urls.quote_address(url) if urls.is_http_url(url) else Path(file.location).as_uri(),
        title=page_title(front.meta, body, file.name),
        description=text_value(front.meta.get("description")),
        body=body,
        anchor_style=anchor_style(front.meta, "github"),
        sha256=sha256,
    )


def _embed(file: _Readable, chunks: Iterable[Chunk], encoder: Encoder, is_over: Event) -> list[Vector]:
    """The vectors of the title and of the chunks; of a page that changed in one place, most are known.

    Once it is over, which nobody waits for, only of the first of them.
    """
    passages = [passage_text(chunk.title, chunk.heading, chunk.text) for chunk in chunks]
    texts = [title_text(file.page.title), *passages]
    return [
        file.known[text] if text in file.known else encoder.embed_passage(text)
        for text in takewhile(lambda _: not is_over.is_set(), texts)
    ]


def _awaited(made: Future[_Made], check: Callable[[], None]) -> _Made:
    while not wait([made], CHECK_S).done:
        check()
    return made.result()


def _keep(made: _Made, index: LocalIndex | None, files: Mapping[str, SourceFile]) -> Outcome:
    """Puts the chunks in. `files` are all that are ingested, by location."""
    file = made.of
    if not made.chunks:
        return Outcome(file.file.name, "refused", note="no text")
    if index is not None:
        try:
            title_vector, *vectors = made.vectors
            index.replace(file.file.location, file.digest, made.chunks, np.array(vectors), title_vector)
        except AddressTakenError as taken:
            if not _is_left(taken, files, file.page.collection):
                return Outcome(file.file.name, "refused", note=str(taken))
            # Its turn comes, or else the next command puts it in.
            index.delete(taken.location)
            return _keep(made, index, files)
    return Outcome(file.file.name, "new" if file.is_new else "changed", len(made.chunks))


def _is_left(taken: AddressTakenError, files: Mapping[str, SourceFile], collection: str) -> bool:
    """Whether the file that has the address in the index has another one by now, and is ingested too."""
    if (holder := files.get(taken.location)) is None:
        return False
    now = _read(holder, collection, None, dry_run=True)
    return isinstance(now, _Readable) and now.page.url != taken.url

"""Chunks as a client reads them: those that answer a question, and what stands around one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from handler.bundle.joined import search_distinct
from handler.bundle.reader import Index
from handler.bundle.search import Hit
from handler.bundle.types import Chunk
from ralph_fs.rag_corpus import Corpus
from ralph_fs.reading import MAX_ANSWER_BYTES
from ralph_fs.refusal import RefusedError, shown

MAX_HITS = 20
NOTHING = "Nothing that is indexed answers this."


def search(corpus: Corpus, query: str, collections: Sequence[str], top_k: int, *, explain: bool) -> str:
    """The chunks that answer a question best, or that there are none. Raises RefusedError."""
    if not 1 <= top_k <= MAX_HITS:
        raise RefusedError(f"top_k: give 1 to {MAX_HITS}")
    with corpus.refusing():
        bundle = corpus.current()
        known = [*bundle.index.collections]
        for name in collections:
            if name not in known:
                raise RefusedError(f"{shown(name)}: nothing is in it; there are {', '.join(known) or 'none'}")
        found = search_distinct(bundle, query, collections or known, top_k)
    texts = [_told(corpus, hit, explain=explain) for hit in found.hits] or [NOTHING]
    return "\n\n".join([f"[{found.gate.reason}]", *texts] if explain else texts)


def get_chunk(corpus: Corpus, chunk_id: str, n_around: int, *, whole_page: bool) -> str:
    """A chunk of a search with those before and after it, or all of its page. Raises RefusedError."""
    if n_around < 0:
        raise RefusedError("around: give a number from 0 on")
    with corpus.refusing():
        index = corpus.current().index
        number, ordinal = _find(index, chunk_id)
        rows = np.flatnonzero(index.page_numbers == number)
        if ordinal >= len(rows):
            raise RefusedError(f"{shown(chunk_id)}: its page has {len(rows)} chunks by now; search again")
        around = rows if whole_page else rows[max(0, ordinal - n_around) : ordinal + n_around + 1]
        chunks = index.chunks(around.tolist())
    head = f"{chunks[0].title}\n{corpus.shown_address(chunks[0].url)}, {len(rows)} chunks"
    return _bounded(head, chunks)


def _told(corpus: Corpus, hit: Hit, *, explain: bool) -> str:
    chunk = hit.chunk
    anchor = f"#{chunk.anchor}" if chunk.anchor and not chunk.url.startswith("file:") else ""
    lines = [
        " > ".join(dict.fromkeys((chunk.title, *chunk.heading))),
        f"{corpus.shown_address(chunk.url)}{anchor} ({chunk.collection}, id {_id_of(chunk)})",
        *([f"[{hit.reason}; cosine {hit.cosine:.3f}, BM25 {hit.bm25:.1f}]"] if explain else []),
        chunk.text,
    ]
    return "\n".join(lines)


def _id_of(chunk: Chunk) -> str:
    """An id that stays as long as the page has its address and the chunk its place, in either index."""
    return f"{_page_id(chunk.url)}:{chunk.ordinal}"


def _page_id(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()[:12]


def _find(index: Index, chunk_id: str) -> tuple[int, int]:
    """The number of an id's page, and the place of the chunk in it, from 0."""
    page_id, _, ordinal = chunk_id.partition(":")
    # Longer ones are no number of a chunk, and from 4,300 digits on Python makes no number of them.
    if len(ordinal) < 10 and ordinal.isascii() and ordinal.isdecimal():
        for url, number in index.page_number_by_url.items():
            if _page_id(url) == page_id:
                return number, int(ordinal)
    raise RefusedError(f"{shown(chunk_id)}: is no id of a chunk; rag_search gives them")


def _bounded(head: str, chunks: Sequence[Chunk]) -> str:
    """The chunks below each other, as many as one answer takes."""
    parts = [head]
    room = MAX_ANSWER_BYTES
    for chunk in chunks:
        part = f"[id {_id_of(chunk)}]\n{chunk.text}"
        room -= len(part.encode())
        if room < 0:
            parts.append(f"[cut; go on with id {_id_of(chunk)}]")
            break
        parts.append(part)
    return "\n\n".join(parts)

"""Chunks and titles to vectors, computing only those that were never computed before."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import numpy as np

from handler.bundle.encoder import Encoder, Vector, check_unit
from pipeline.progress import Progress, no_progress
from pipeline.vector_cache import VectorCache, vector_key

# Vectors a transaction: a few seconds' work, which is the most that an interrupt can lose.
COMMIT_EVERY = 64


def embed_passages(
    texts: Sequence[str],
    encoder: Encoder,
    cache: VectorCache,
    progress: Progress = no_progress,
    workers: int | None = None,
) -> Vector:
    """(n, dim) float32, unit rows, in the order of the texts; the same bytes from the cache and afresh.

    `workers` texts are embedded side by side, as many as there are processors by default. That suits an
    encoder of one thread: texts on a core each finish sooner than one text on all of them.
    Raises BundleError when a text is over the token limit or a vector is not of unit length.
    """
    dim = encoder.spec.dim
    keys = [vector_key(encoder.spec.fingerprint, text) for text in texts]
    known = dict(cache.get(dict.fromkeys(keys), dim))
    # In the order of their digests, so that those that are done are a fair sample at any moment. In the order
    # of their pages, the time left was at times told as a quarter of what it was, where the short come first.
    missing = {key: text for key, text in sorted(zip(keys, texts, strict=True)) if key not in known}
    computed = _embed_missing(missing, encoder, cache, workers or os.cpu_count() or 1)
    known.update(progress(computed, len(missing)))
    vectors = np.array([known[key] for key in keys], np.float32).reshape(len(keys), dim)
    check_unit(vectors, encoder.spec)
    return vectors


def write_vectors(vectors: Vector, path: Path) -> None:
    """Writes the matrix as .npy, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished.npy")
    np.save(unfinished, vectors)
    unfinished.replace(path)


def _embed_missing(
    texts: Mapping[bytes, str], encoder: Encoder, cache: VectorCache, workers: int
) -> Iterator[tuple[bytes, Vector]]:
    """Each text's vector with its key; kept in the cache some seconds later, or when the caller stops."""
    waiting = iter(texts.items())
    with ThreadPoolExecutor(workers) as pool:
        while batch := dict(islice(waiting, COMMIT_EVERY)):
            done: dict[bytes, Vector] = {}
            try:
                for key, vector in zip(batch, pool.map(encoder.embed_passage, batch.values()), strict=True):
                    done[key] = vector
                    yield key, vector
            finally:
                cache.put(done)

"""What the `ralph` command does: ask, search, verify, diff. Each returns an exit code."""

from __future__ import annotations

import json
import math
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from handler import terminal
from handler.bundle.bundle import Bundle
from handler.bundle.diff import diff as diff_bundles
from handler.bundle.diff import format_diff
from handler.bundle.search import CHUNKS_FOR_ANSWER, Hit, SearchResult
from handler.bundle.types import BundleError
from handler.bundle.verify import verify as verify_bundle
from handler.followup import search_in_context
from handler.generate.extractive import ABOUT_ME, best_quotes, numbered_text
from handler.settings import read_settings
from handler.smalltalk import is_small_talk


def ask(arguments: Namespace, environ: Mapping[str, str]) -> int:
    """Prints an answer with its sources."""
    bundle = _open(arguments, environ)
    search_bundle = partial(
        bundle.search,
        collections=_collections(arguments, bundle),
        page=arguments.page,
        gated=not arguments.no_gate,
        chunks_per_page=CHUNKS_FOR_ANSWER,
    )
    found = search_in_context(search_bundle, arguments.question)
    quotes = best_quotes(found.question, found.hits, bundle.encoder, found.vector)
    is_hello = is_small_talk(arguments.question)
    if arguments.json:
        citations = [
            {"source": quote.source, "quote": quote.text, **_address(found.hits[quote.source - 1])}
            for quote in quotes
        ]
        text = ABOUT_ME if is_hello else numbered_text(quotes)
        _print_json({**_result(found), "answer": text, "citations": citations, "generator": "extractive"})
    else:
        print(ABOUT_ME if is_hello else terminal.format_answer(found, quotes))
    return 0


def search(arguments: Namespace, environ: Mapping[str, str]) -> int:
    """Prints the hits of one question, or of every line of a batch."""
    if (arguments.question is None) == (arguments.batch is None):
        raise BundleError("search takes a question or --batch FILE, one of them")
    bundle = _open(arguments, environ)
    collections = _collections(arguments, bundle)

    def run(question: str, page: str | None) -> SearchResult:
        return bundle.search(
            question,
            collections=collections,
            top_k=arguments.top_k,
            mode=arguments.mode,
            gated=not arguments.no_gate,
            chunks_per_page=None if arguments.all_chunks else 1,
            page=page,
        )

    if arguments.batch is not None:
        for row in _read_batch(arguments.batch):
            _print_json({"id": row["id"], **_result(run(row["text"], row.get("page") or arguments.page))})
        return 0
    result = run(arguments.question, arguments.page)
    if arguments.json:
        _print_json(_result(result))
    else:
        print(terminal.format_hits(result, explain=arguments.explain))
    return 0


def verify(arguments: Namespace, environ: Mapping[str, str]) -> int:
    """Prints each check of a bundle that holds; the first that does not is the error."""
    for line in verify_bundle(read_settings(environ, arguments.bundle).bundle):
        print(line, flush=True)
    return 0


def diff(arguments: Namespace, _environ: Mapping[str, str]) -> int:
    """Prints what changed between two bundles; 1 when recall or refusal got worse."""
    difference = diff_bundles(arguments.old, arguments.new)
    print(format_diff(difference))
    return 1 if difference.worse else 0


def _open(arguments: Namespace, environ: Mapping[str, str]) -> Bundle:
    settings = read_settings(environ, arguments.bundle)
    bundle = Bundle.open(settings.bundle).with_max_distance(settings.max_distance)
    if arguments.page and bundle.index.page_number(arguments.page) is None:
        print(
            f"ralph: --page: {arguments.page} is no page of this bundle, and counts for nothing",
            file=sys.stderr,
        )
    return bundle


def _collections(arguments: Namespace, bundle: Bundle) -> list[str] | None:
    """The collections that were asked for by name, each one known to the bundle."""
    for name in arguments.collection or ():
        if name not in bundle.manifest.collections:
            known = ", ".join(bundle.manifest.collections)
            raise BundleError(f"--collection: {name!r} is not in this bundle, which has {known}")
    return arguments.collection or None


def _read_batch(name: str) -> Iterator[dict[str, Any]]:
    """The rows of a JSON-lines file. Raises BundleError naming the line that is none."""
    try:
        # A byte order mark, as editors on Windows write one, is no part of the first line.
        with open(0 if name == "-" else name, encoding="utf-8-sig", closefd=name != "-") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _batch_row(f"{name}:{number}", line)
    except (OSError, UnicodeDecodeError) as error:
        raise BundleError(f"{name} cannot be read: {error}") from None


def _batch_row(where: str, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{where}: not a line of JSON: {error}") from None
    if not isinstance(row, dict) or "id" not in row or not isinstance(row.get("text"), str):
        raise BundleError(f'{where}: write {{"id": …, "text": "the question"}}')
    if not isinstance(row.get("page"), str | None):
        raise BundleError(f"{where}: page: {row['page']!r} is no URL")
    return row


def _finite(text: str) -> float:
    """The number, which an id can carry back: Python reads and writes NaN and 1e999, JSON has neither."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no number")
    return number


def _result(result: SearchResult) -> dict[str, Any]:
    return {
        "question": result.question,
        "hits": [_hit(hit) for hit in result.hits],
        "gate": {"accepted": result.gate.accepted, "reason": result.gate.reason},
    }


def _hit(hit: Hit) -> dict[str, Any]:
    return {
        **_address(hit),
        "path": hit.chunk.path,
        "collection": hit.chunk.collection,
        "text": hit.chunk.text,
        "score": round(hit.score, 6),
        "cosine": round(hit.cosine, 6),
        "bm25": round(hit.bm25, 6),
        "vector_rank": hit.vector_rank,
        "keyword_rank": hit.keyword_rank,
        "reason": hit.reason,
    }


def _address(hit: Hit) -> dict[str, Any]:
    chunk = hit.chunk
    return {
        "url": chunk.url,
        "anchor": chunk.anchor,
        "title": chunk.title,
        "heading": " > ".join(chunk.heading),
    }


def _print_json(row: dict[str, Any]) -> None:
    # ASCII escapes keep lone surrogates and line separators inside their one line.
    print(json.dumps(row), flush=True)

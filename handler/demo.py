"""The page on which a bundle can be tried: what it is about, and questions to begin with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from itertools import chain, islice, zip_longest

import numpy as np

from handler.answer import public_names
from handler.bundle.bundle import Bundle
from handler.bundle.counted import counted

N_QUESTIONS = 3


def demo_page(template: str, nonce: str, bundle: Bundle, starters: Sequence[str], privacy: str) -> str:
    """The template with each {{name}} filled in. Without `starters` the questions are about the pages."""
    collections = [bundle.manifest.collections[name] for name in public_names(bundle, None)]
    questions = starters or page_questions(bundle)
    values = {
        "nonce": nonce,
        "title": _listed([collection.title for collection in collections]) or "this site",
        "pages": counted(sum(collection.n_pages for collection in collections), "page"),
        "privacy": privacy,
        "starters": " | ".join(questions),
    }
    filled = {name: escape(value) for name, value in values.items()}
    filled["questions"] = "\n      ".join(
        f'<li><button type="button" class="question" dir="auto">{escape(question)}</button></li>'
        for question in questions
    )
    # In one go: a title may hold what looks like a name.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: filled[found[1]], template)


def page_questions(bundle: Bundle) -> list[str]:
    """Questions about the longest public pages, which have most to say, of each collection in turn."""
    longest = [_longest_pages(bundle, name) for name in public_names(bundle, None)]
    in_turn = [row for row in chain.from_iterable(zip_longest(*longest)) if row is not None]
    titles = (chunk.title for chunk in bundle.index.chunks(in_turn))
    # "|" stands between the questions of a script tag.
    questions = dict.fromkeys(_question(title) for title in titles if title and "|" not in title)
    return [*islice(questions, N_QUESTIONS)]


def _question(title: str) -> str:
    return title if title.endswith("?") else f"What is “{title}” about?"


def _longest_pages(bundle: Bundle, collection: str) -> list[int]:
    """The first rows of the pages with the most chunks, some more than are asked about."""
    rows = bundle.index.rows_in(collection)
    _, firsts, sizes = np.unique(bundle.index.page_numbers[rows], return_index=True, return_counts=True)
    longest = np.argsort(-sizes, kind="stable")[: 2 * N_QUESTIONS]
    return [int(rows[first]) for first in firsts[longest]]


def _listed(titles: Sequence[str]) -> str:
    """The titles as a sentence has them: "A", "A and B", "A, B and C"."""
    return " and ".join(filter(None, [", ".join(titles[:-1]), *titles[-1:]]))

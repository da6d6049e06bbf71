"""A page's title is found wherever it stands."""

from __future__ import annotations

import pytest

from pipeline.export.title import page_title
from pipeline.frontmatter import parse


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: Front\n---\n# Heading", "Front"),
        ("---\ntitle: null\n---\n# Heading", "Heading"),
        ("---\ntitle: 2024-05-01\n---\n", "2024-05-01"),
        ("---\ntitle: 1984\n---\n", "1984"),
        ("---\npost_title: 'Byrne &#038; Bach &#8211; <em>live</em>'\n---\n", "Byrne & Bach – live"),
        ("---\npost_title: >\n  Folded\n  title\n---\n", "Folded title"),
        ("---\ntitle: Vec<T> in Rust\n---\n", "Vec<T> in Rust"),
        ("Prose first.\n\n# The `heading` of [it](x) {#id} #\n", "The heading of it"),
        ("# C#\n", "C#"),
        ("# **Bold** &amp; plain {#custom}\n", "Bold & plain"),
        ("Setext\n======\n", "Setext"),
        ("## No title\n=====\n\nText\n", "my first post"),
        ("```\n# comment\n```\n\n# Real\n", "Real"),
        ("<h1 align='center'>Raw <b>HTML</b></h1>\n", "Raw HTML"),
        ("## Only a second level\n", "my first post"),
    ],
)
def test_titles(text: str, title: str) -> None:
    front = parse(text)
    assert page_title(front.meta, front.body, "blog/2024-05-01-my_first-post.md") == title


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("guide/index.md", "guide"),
        ("a/README.md", "a"),
        ("index.md", "index"),
        ("2024-05-01.md", "2024 05 01"),
    ],
)
def test_titles_from_file_names(path: str, title: str) -> None:
    assert page_title({}, "", path) == title

from __future__ import annotations

import pytest

from pipeline.anchors import Anchors
from pipeline.blocks import parse_blocks
from pipeline.page import AnchorStyle


def anchors(style: AnchorStyle, markdown: str) -> list[str]:
    page = Anchors(style)
    return [page.add(heading) for block in parse_blocks(markdown) for heading in block.headings]


# What github-slugger 2.0.0 returns for these texts, asked in this order of one slugger.
GITHUB_SLUGGER = [
    ("Hello World", "hello-world"),
    ("Hello World", "hello-world-1"),
    ("Hello World", "hello-world-2"),
    ("hello-world-1", "hello-world-1-1"),
    ("C# & F#", "c--f"),
    ("What's new in 2.0?", "whats-new-in-20"),
    ("Straße", "straße"),
    ("Über uns", "über-uns"),
    ("日本語の見出し", "日本語の見出し"),
    ("हिन्दी शीर्षक", "हिन्दी-शीर्षक"),
    ("العربية: نص", "العربية-نص"),
    ("🎉 Party 👨‍👩‍👧 time", "-party--time"),
    ("I ❤️ unicode", "i-️-unicode"),
    ("foo_bar baz", "foo_bar-baz"),
    ("a--b — c", "a--b--c"),
    ("naïve café", "naïve-café"),
    ("İstanbul", "i̇stanbul"),
    ("½ price ² ①", "-price--"),
    ("1. First", "1-first"),
]


def test_github_anchors_are_those_of_github_slugger() -> None:
    markdown = "\n\n".join(f"## {text}" for text, _ in GITHUB_SLUGGER)
    assert anchors("github", markdown) == [slug for _, slug in GITHUB_SLUGGER]


def test_github_anchors_are_made_of_the_words_alone() -> None:
    markdown = "## The `code` of *A* [link](https://example.org) ![alt](a.png) &amp; **b** <kbd>K</kbd>"
    assert anchors("github", markdown) == ["the-code-of-a-link-alt--b-k"]


def test_hugo_anchors_are_made_of_the_source_with_its_link_targets() -> None:
    markdown = "# A [link](/b/) & `code_x`\n# A B\n# A B\n# !!!\n# !!!\n# 1. Ünï\n"
    assert anchors("hugo", markdown) == ["a-linkb--code_x", "a-b", "a-b-1", "heading", "heading-1", "1-ünï"]


def test_kramdown_anchors_count_repeated_headings_and_drop_dashes() -> None:
    markdown = "# Why *it* works\n# Why it works\n# why-it-works\n# A -- b\n# हिन्दी!\n"
    assert anchors("kramdown", markdown) == [
        "why-it-works", "why-it-works-1", "why-it-works-2", "a--b", "हिन्दी",
    ]  # fmt: skip


def test_docusaurus_gives_a_title_no_anchor_and_counts_it_all_the_same() -> None:
    assert anchors("docusaurus", "# Setup\n## Setup\n## Run {#go}\n") == ["", "setup-1", "go"]


def test_zola_anchors_are_ascii() -> None:
    assert anchors("zola", "# Ça va? *Oui!*\n# ça va oui\n# 北京\n") == [
        "ca-va-oui",
        "ca-va-oui-1",
        "bei-jing",
    ]


def test_no_style_no_anchor_unless_written_down() -> None:
    assert anchors("none", "# A\n# B {#b}\n<h2 id=c>C</h2>") == ["", "b", "c"]


@pytest.mark.parametrize("style", ["github", "hugo", "kramdown", "zola", "none"])
@pytest.mark.parametrize(
    "heading",
    [
        "## A heading {#my-id}",
        "## A heading {#my-id .wide}",
        "## A heading {: #my-id}",
        "## A heading {/* #my-id */}",
        "## A heading {#my-id} ##",
        "A heading {#my-id}\n---",
        "<h2 id='my-id'>A heading</h2>",
        "<h2 class=wide id=my-id>A heading</h2>",
    ],
)
def test_an_id_that_is_written_down_wins(style: AnchorStyle, heading: str) -> None:
    assert anchors(style, heading) == ["my-id"]


def test_braces_that_are_no_id_belong_to_the_heading() -> None:
    assert anchors("github", "## The {name} of {#it} all") == ["the-name-of-it-all"]


def test_headings_in_lists_and_quotes_count_as_the_generator_counts_them() -> None:
    assert anchors("github", "# A\n\n> # A\n\n- # A\n\n# A") == ["a", "a-1", "a-2", "a-3"]


def test_what_looks_like_a_heading_in_code_has_no_anchor() -> None:
    assert anchors("github", "```\n# A\n```\n\n    # A\n\n<!--\n<h2>A</h2>\n-->\n\n# A") == ["a"]


def test_a_raw_html_heading_without_id_has_no_anchor() -> None:
    assert anchors("github", "<h2>A</h2>\n\n## A") == ["", "a"]

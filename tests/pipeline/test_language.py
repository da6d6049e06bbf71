from __future__ import annotations

import pytest

from pipeline.language import primary_language


@pytest.mark.parametrize(
    ("tag", "language"),
    [
        ("en", "en"),
        ("en-US", "en"),
        ("EN_gb", "en"),
        (" de ", "de"),
        ("zh-Hans-CN", "zh"),
        ("zh-hans", "zh"),
        ("gsw", "gsw"),
        ("de-1996", "de"),
    ],
)
def test_a_tag_has_a_language_whatever_its_case_and_subtags(tag: str, language: str) -> None:
    assert primary_language(tag) == language


@pytest.mark.parametrize(
    "text",
    ["", "e", "English", "{{ page.lang }}", "en-", "-en", "en US", "en,de", "und", "mul", "zxx", "x-a"],
)
def test_what_names_no_language_is_no_tag(text: str) -> None:
    assert primary_language(text) == ""

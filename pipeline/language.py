"""Languages as pages and settings name them: BCP 47 tags, told apart by their primary subtag."""

from __future__ import annotations

import re

# RFC 5646, section 2.1, without languages of four letters and more, of which none is registered, and with the
# `_` of locales. What a programmer's page calls its language (`go`, `php`) can look like one: to tell, a list
# of all languages would be needed.
_TAG = re.compile(r"([a-z]{2,3})(?:[-_][a-z0-9]{1,8})*", re.I)
# Codes of ISO 639-2 that name no language: undetermined, multiple, none.
_NO_LANGUAGE = frozenset(("und", "mul", "zxx"))


def primary_language(tag: str) -> str:
    """The language of a tag in lower case: `en` of `en-US` and `EN_gb`; empty when the text is no tag."""
    match = _TAG.fullmatch(tag.strip())
    language = match[1].lower() if match else ""
    return "" if language in _NO_LANGUAGE else language

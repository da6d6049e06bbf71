"""What to search for when a question leans on an earlier one, or on the page that is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from handler.bundle.gate import Verdict
from handler.bundle.search import SearchResult
from handler.bundle.terms import STOPWORDS, query_phrases
from handler.generate.types import PageRead, Turn
from handler.smalltalk import is_small_talk

Search = Callable[[str], SearchResult]

# A question with more content words than this says itself what it is about: after words that go on with
# something, with a pronoun where the topic should be, with one at its end, and in a fragment.
MAX_AFTER_OPENER = 3
MAX_WITH_PRONOUN = 3
MAX_WITH_LAST_PRONOUN = 2
MAX_IN_FRAGMENT = 2
MAX_ABOUT_PAGE = 1
# So many earlier questions at most, of those that lean on each other.
MAX_EARLIER = 3
MAX_TITLE_CHARS = 200

_OPENER = re.compile(
    r"(?:and|but|or|so|also|then|what about|how about|what if|which (?:ones?|of)|instead|"
    r"(?:on|in|with|without|for|from|to|by|at)(?! (?:what|which|whom?)))\b",
    re.IGNORECASE,
)
_BARE_REQUEST = re.compile(
    r"(?:please |can you |could you )*(?:explain|elaborate|continue|go on|(?:an |more |for )?examples?|"
    r"(?:more |any )?details?|give (?:me )?(?:an |more )?(?:examples?|details?))(?: please)?[\s?.!]*",
    re.IGNORECASE,
)
# `he` and `she` are the site's author, `this` and `here` the page that is read where there is one.
_PRONOUNS = frozenset(["it", "its", "itself", "they", "them", "their", "theirs", "these", "those"])
_LAST_PRONOUNS = _PRONOUNS | {"that", "one", "ones"}
_TO_THE_BOT = re.compile(r"\b(?:you|your|hi|hello|hey|thanks|thank)\b", re.IGNORECASE)
_AT_PAGE = re.compile(r"\b(?:this|here)\b", re.IGNORECASE)
_WORDS_FOR_PAGE = frozenset(
    ["page", "article", "post", "text", "summary", "summarize", "summarise", "explain"]
)
_SENTENCE = re.compile(
    r"(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|can|could|will|would|"
    r"should|has|have|had|may|must|tell|show|explain|list|write|give|find)(?:['’]s)?\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+")


def search_in_context(
    search: Search, question: str, history: Sequence[Turn] = (), page: PageRead | None = None
) -> SearchResult:
    """What the first of `search_texts` finds that the gate accepts, else what the last one does.

    Small talk finds nothing: a page that says hello is no source of an answer to it.
    """
    if is_small_talk(question):
        return SearchResult(question, (), Verdict(False, "small talk"))
    for text in search_texts(question, history, page):
        found = search(text)
        if found.gate.accepted:
            break
    return found


def search_texts(question: str, history: Sequence[Turn] = (), page: PageRead | None = None) -> list[str]:
    """What to search for, in this order until something is found.

    A question that stands by itself is searched alone and nothing else, or an off-topic one would be answered
    with what was found before. One that leans on the reader's earlier questions is searched with them, and
    alone only when that finds nothing. A fragment ("nginx?") may be either: alone first. What points at the
    page ("what is this?") is searched with its title.

    A question leans when it has no content word ("why?"), goes on with something ("and on nginx?", "what
    about …"), or has a pronoun in the place where the topic should be ("how do I install it?"), and has few
    content words beside that. The rule knows English; other questions are searched alone, or as fragments.

    Of 20 follow-up questions about Ralph's documentation 16 find the right page first, 8 without the rule; of
    its 30 full questions asked after another one 23 do, 24 without, and 12 where all are searched with the
    earlier one. Of 400 off-topic questions 3 are accepted after a question that is none, 2 without.
    """
    title = page.title.strip()[:MAX_TITLE_CHARS] if page else ""
    is_about_page = points_at_page(question)
    if is_about_page and title:
        return [f"{question}\n{title}", question]
    earlier = _earlier(history)
    if not earlier:
        return [question]
    # The question first: what is too long for the model is cut off at the end.
    both = "\n".join([question, *earlier])
    if is_about_page or leans(question):
        return [both, question]
    return [question, both] if _is_fragment(question) else [question]


def points_at_page(question: str) -> bool:
    """Whether a question means what the reader has before them, and says little beside that."""
    words = set(query_phrases(question)) - _WORDS_FOR_PAGE
    return len(words) <= MAX_ABOUT_PAGE and _AT_PAGE.search(question) is not None


def leans(question: str) -> bool:
    """Whether a question cannot be understood without an earlier one."""
    words = query_phrases(question)
    if not words:
        return not (_TO_THE_BOT.search(question) or _AT_PAGE.search(question))
    if _BARE_REQUEST.fullmatch(question.strip()):
        return True
    if _OPENER.match(question.strip()):
        return len(words) <= MAX_AFTER_OPENER
    return len(words) <= _max_content_words(question)


def _max_content_words(question: str) -> int:
    """How many content words a question may have to lean on another by its pronouns; 0 without any.

    A pronoun stands for the topic before all content words but one, the verb. In "How does Ralph decide that
    it …" the topic is named before. `that` is a pronoun only in front of them all.
    """
    n_content = 0
    words = _WORD.findall(question.lower())
    for word in words:
        if (word in _PRONOUNS and n_content <= 1) or (word == "that" and not n_content):
            return MAX_WITH_PRONOUN
        n_content += word not in STOPWORDS
    return MAX_WITH_LAST_PRONOUN if words and words[-1] in _LAST_PRONOUNS else 0


def _is_fragment(question: str) -> bool:
    """Whether it is no sentence, and short."""
    return (
        len(query_phrases(question)) <= MAX_IN_FRAGMENT
        and not _SENTENCE.match(question.strip())
        and not _TO_THE_BOT.search(question)
    )


def _earlier(history: Sequence[Turn]) -> list[str]:
    """The reader's last question that stands by itself and those after it, at most MAX_EARLIER, in order."""
    asked = [turn.text for turn in history if turn.role == "user"]
    chain: list[str] = []
    for text in reversed(asked[-MAX_EARLIER:]):
        chain.insert(0, text)
        if not leans(text):
            break
    return chain

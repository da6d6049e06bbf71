"""What readers say to the bot itself, which no page answers."""

from __future__ import annotations

import re

_HELLO = r"(?:hi|hello|hey|hallo|good (?:morning|day|evening)|thanks|thank you|bye)(?: there)?"
_WHO = r"(?:who|what) are you|what(?:['’]s| is) your name|what can (?:you do|i ask)(?: you)?|how are you"
MAX_SMALL_TALK_CHARS = 80
_SMALL_TALK = re.compile(rf"(?:{_HELLO}[\s,.!]*)?(?:{_WHO})?[\s?.!]*", re.IGNORECASE)


def is_small_talk(question: str) -> bool:
    """Whether somebody says hello or thanks, or asks the bot who it is, and nothing about the pages."""
    if len(question) > MAX_SMALL_TALK_CHARS or not any(map(str.isalpha, question)):
        return False
    return _SMALL_TALK.fullmatch(question.strip()) is not None

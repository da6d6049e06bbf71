"""What went wrong between us and Claude, as a sentence for the reader; the rest goes to the log.

Nothing of the API's own words, which may name the account, gets to the reader.
"""

from __future__ import annotations

import logging
import math

import httpx2
from anthropic import APIConnectionError, APIStatusError, APITimeoutError

from handler.events import ErrorCode
from handler.generate.types import GeneratorError

# When to try again where the API does not say.
RETRY_AFTER_S = 10
# The longest wait for a retry that a reader is not told of.
MAX_SILENT_WAIT_S = 2.0

_SENTENCES: dict[ErrorCode, str] = {
    "rate_limited": "Too many questions are being asked of Claude right now. Try again in a moment.",
    "overloaded": "Claude has too much to do right now. Try again in a moment.",
    "timeout": "Claude took too long to answer. Try again.",
    "cut_off": "The answer broke off on its way here. Try again.",
    "refused": "Claude does not accept questions from this site right now. Its owner can see why in the log.",
}
_BY_ERROR_TYPE: dict[str, ErrorCode] = {
    "rate_limit_error": "rate_limited",
    "overloaded_error": "overloaded",
    "timeout_error": "timeout",
    "api_error": "overloaded",
}

_log = logging.getLogger(__name__)


def explained(error: Exception, *, is_begun: bool) -> GeneratorError:
    """The error for the reader. `is_begun` says whether the API had accepted the question."""
    code = _code(error, is_begun)
    retry_after_s = _retry_after_s(error) if code in ("rate_limited", "overloaded") else None
    _log.warning("Claude: %s: %s", code, _detail(error))
    return GeneratorError(code, _SENTENCES[code], retry_after_s)


def cut_off() -> GeneratorError:
    """The error for a stream that ended before its answer did."""
    _log.warning("Claude: cut_off: the stream ended without message_stop")
    return GeneratorError("cut_off", _SENTENCES["cut_off"])


async def refuse_long_waits(response: httpx2.Response) -> None:
    """Keeps the SDK from a retry that the API wants only after a long pause: the reader is told instead."""
    seconds = _seconds(response)
    if seconds is not None and seconds > MAX_SILENT_WAIT_S:
        response.headers["x-should-retry"] = "false"


def _code(error: Exception, is_begun: bool) -> ErrorCode:
    if isinstance(error, APIStatusError):
        # An error in mid-stream has the status 200, and only its type tells.
        known = _BY_ERROR_TYPE.get(error.type or "")
        if is_begun or known:
            return known or "cut_off"
        by_status: dict[int, ErrorCode] = {
            408: "timeout",
            409: "overloaded",
            429: "rate_limited",
            504: "timeout",
        }
        return by_status.get(error.status_code, "overloaded" if error.status_code >= 500 else "refused")
    if isinstance(error, APITimeoutError | httpx2.TimeoutException | TimeoutError):
        return "timeout"
    return "overloaded" if isinstance(error, APIConnectionError) else "cut_off"


def _retry_after_s(error: Exception) -> int:
    seconds = _seconds(error.response) if isinstance(error, APIStatusError) else None
    return RETRY_AFTER_S if seconds is None else max(1, math.ceil(seconds))


def _seconds(response: httpx2.Response) -> float | None:
    """What the API says in retry-after, in seconds; None when it says nothing, or a date."""
    try:
        seconds = float(response.headers["retry-after"])
    except (KeyError, ValueError):
        return None
    return seconds if math.isfinite(seconds) else None


def _detail(error: Exception) -> str:
    if isinstance(error, APIStatusError):
        return f"{error.status_code} {error.type} {error.api_message!r:.300}, request {error.request_id}"
    return repr(error.__cause__ or error)

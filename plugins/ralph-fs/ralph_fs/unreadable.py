"""What is answered to lines that are no message, of which the MCP library says nothing to the client.

Half of a surrogate pair in a text is enough for one: JSON's grammar has it, Unicode does not, and a program
that cuts texts makes it. Without an answer, the client waits for its call until it loses patience.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, Awaitable, Callable

from anyio.abc import ObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError


async def relay(
    lines: AsyncIterable[SessionMessage | Exception],
    messages: ObjectSendStream[SessionMessage | Exception],
    answer: Callable[[SessionMessage], Awaitable[None]],
) -> None:
    """Passes messages on, and answers what is none, until the lines end."""
    async with messages:
        async for item in lines:
            if isinstance(item, Exception):
                await answer(SessionMessage(error_for(item)))
            else:
                await messages.send(item)


def error_for(problem: Exception) -> JSONRPCError:
    """The answer, as JSON-RPC 2.0 has it in section 5.1; with the id of the call where that can be read."""
    found = problem.errors(include_url=False)[0] if isinstance(problem, ValidationError) else None
    if not found or found["type"] != "json_invalid":
        error = ErrorData(code=INVALID_REQUEST, message="Invalid Request")
        return JSONRPCError(jsonrpc="2.0", id=None, error=error)
    error = ErrorData(code=PARSE_ERROR, message=f"Parse error: {found['ctx']['error']}")
    return JSONRPCError(jsonrpc="2.0", id=_id_in(found["input"]), error=error)


def _id_in(line: str) -> int | str | None:
    """The id of a call whose line Python's own parser takes, which asks for less."""
    try:
        call = json.loads(line)
    except (ValueError, RecursionError):
        return None
    number = call.get("id") if isinstance(call, dict) else None
    if isinstance(number, bool) or not isinstance(number, int | str):
        return None
    # An id that has such a half in it cannot be written either.
    return number if str(number).isprintable() else None

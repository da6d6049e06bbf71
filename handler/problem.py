"""What a client gets in place of an answer: a status, and JSON with a code and a sentence for people."""

from __future__ import annotations

from starlette.responses import JSONResponse

from handler.events import ErrorCode


def problem(status: int, code: ErrorCode, message: str, retry_after_s: int | None = None) -> JSONResponse:
    """The response for something that went wrong before a stream began."""
    return JSONResponse(
        {"error": {"code": code, "message": message, "retry_after_s": retry_after_s}},
        status_code=status,
        headers={"Retry-After": str(retry_after_s)} if retry_after_s is not None else None,
    )

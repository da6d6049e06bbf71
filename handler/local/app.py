"""The local chat as a web application: its page, what the page asks for, and who may ask."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from starlette.exceptions import HTTPException

from handler.bundle.types import BundleError
from handler.local.guard import Guard
from handler.local.routes import Service, router
from handler.problem import problem

PAGE = Path(__file__).with_name("page")
PATHS = {"/": "index.html", "/chat.css": "chat.css", "/chat.js": "chat.js"}


def create_app(service: Service) -> FastAPI:
    """The app. It answers nobody but its own page and programs of this machine."""
    app = FastAPI(
        title="Ralph, locally",
        # Their pages would load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        # FastAPI can send traces, and what it found wrong with a question, wherever the environment says.
        telemetry={"auto_configure": False, "tracing": False, "metrics": False, "logs": False},
        exception_handlers={
            RequestValidationError: _invalid,
            HTTPException: _refused,
            BundleError: _unreadable,
        },
    )
    app.state.service = service
    app.include_router(router)
    for path, name in PATHS.items():
        app.add_route(path, partial(_file, name), methods=["GET"])
    app.add_middleware(Guard)
    return app


async def _file(name: str, _request: Request) -> Response:
    """A file of the page, read again each time."""
    return FileResponse(PAGE / name, headers={"Cache-Control": "no-cache"})


async def _invalid(_request: Request, error: Exception) -> Response:
    """What is wrong with a request, without repeating it."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:])[:80]
    return problem(422, "bad_request", f"{ascii(place)[1:-1]}: {first['msg']}")


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    response = problem(error.status_code, "bad_request", error.detail)
    response.headers.update(error.headers or {})
    return response


async def _unreadable(_request: Request, error: Exception) -> Response:
    return problem(503, "internal", f"The index cannot be read: {error}", retry_after_s=5)

"""The app against its own description, with requests that nobody would think of."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from handler.app import create_app
from handler.bundle.bundle import Bundle
from handler.current import Current, Serving
from handler.generate.persona import Persona
from handler.settings import read_serve_settings
from tests.fakes.generator import ScriptedGenerator

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
]


@pytest.fixture(scope="module")
def described(sample_bundle: Path) -> Any:
    current = Current(Serving(Bundle.open(sample_bundle), ScriptedGenerator()))
    app = create_app(
        current,
        read_serve_settings({"ASK_RATE_LIMIT_PER_MIN": "0"}),
        logging.getLogger("test"),
        persona=lambda: Persona("the bot", "# the bot"),
    )
    return schemathesis.openapi.from_asgi("/openapi.json", app)


@pytest.mark.parametrize("mode", GenerationMode, ids=lambda mode: mode.value)
@pytest.mark.parametrize(
    ("path", "method"),
    [("/api/ask", "POST"), ("/api/search", "GET"), ("/api/about", "GET"), ("/healthz", "GET")],
)
def test_no_request_gets_what_is_not_described(
    described: Any, path: str, method: str, mode: GenerationMode
) -> None:
    operation = described[path][method]
    if mode is GenerationMode.NEGATIVE and not (operation.body or operation.query):
        return  # nothing in it can be wrong

    @settings(
        max_examples=40,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: schemathesis.Case[Any]) -> None:
        case.call_and_validate(checks=CHECKS)

    check()


def test_every_path_but_the_widget_is_described(described: Any) -> None:
    assert set(described.raw_schema["paths"]) == {"/api/ask", "/api/search", "/api/about", "/healthz"}
    ask = described.raw_schema["paths"]["/api/ask"]["post"]["responses"]
    assert set(ask) == {"200", "400", "403", "413", "422", "429", "500"}
    assert list(ask["200"]["content"]) == ["text/event-stream"]

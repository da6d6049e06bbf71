"""The app as a function of AWS Lambda: made once, before the first request."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from aws_lambda_powertools.metrics import Metrics
from fastapi import FastAPI

from handler.app import create_app
from handler.budget import Budget
from handler.current import Current, Serving
from handler.generate.extractive import ExtractiveGenerator
from handler.generate.persona import PERSONA, persona_reader
from handler.lambda_metrics import NAMESPACE, Invocations
from handler.lambda_settings import read_lambda_settings
from handler.log import open_log
from handler.serve import generators, open_bundle
from handler.settings import read_serve_settings, read_settings


@dataclass(frozen=True, slots=True)
class Function:
    """The app, and what is to be done once before its first request.

    A snapshot may be taken in between: `begin` reads the key, which does not belong into one.
    """

    app: FastAPI
    begin: Callable[[], None]


def open_function(environ: Mapping[str, str]) -> Function:
    """The function, its bundle verified and warm.

    Raises SettingsError or BundleError when it cannot begin.
    """
    gc.disable()  # as the server does at its start, and for its reason
    settings, source = read_serve_settings(environ), read_settings(environ)
    key_arn = read_lambda_settings(environ).key_arn
    logger = open_log()
    bundle = open_bundle(source)
    if settings.api_key or key_arn:
        import handler.generate.claude_errors  # noqa: F401 - slow: a part of the start, or of its snapshot
    persona = persona_reader(settings.persona or PERSONA)
    current = Current(Serving(bundle, ExtractiveGenerator(bundle.encoder)))
    budget = None
    if settings.daily_tokens is not None:
        # Nothing that is written outlives an instance: each counts for itself, and /healthz says so.
        budget = Budget(settings.daily_tokens, settings.state_dir, time.time)
    app = create_app(current, settings, logger, persona=persona, budget=budget)
    app.add_middleware(Invocations, logger=logger, metrics=Metrics(namespace=NAMESPACE, service="ralph"))

    def begin() -> None:
        key = settings.api_key or (read_secret(key_arn) if key_arn else None)
        make_generator = generators(replace(settings, api_key=key), lambda: persona().text)
        current.serving = Serving(bundle, make_generator(bundle))

    gc.freeze()
    gc.enable()
    return Function(app, begin)


def read_secret(arn: str) -> str:
    """The text of a secret of AWS Secrets Manager."""
    # It needs boto3, 0.6 s and 28 MB, which Lambda's own runtime has; no other host comes here.
    from aws_lambda_powertools.utilities.parameters import get_secret

    return str(get_secret(arn)).strip()

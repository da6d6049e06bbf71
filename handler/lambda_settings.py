"""What a function of AWS Lambda is told, beside the settings of every server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LambdaSettings:
    """What AWS Lambda says of the function.

    `is_snapshot` is whether a snapshot is taken after the start, of which many functions then go on. The
    secret that `key_arn` names holds the key of Anthropic's API, as plain text.
    """

    is_snapshot: bool
    key_arn: str | None


def read_lambda_settings(environ: Mapping[str, str]) -> LambdaSettings:
    """The settings that the environment asks for."""
    return LambdaSettings(
        is_snapshot=environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") == "snap-start",
        key_arn=environ.get("ANTHROPIC_API_KEY_ARN") or None,
    )

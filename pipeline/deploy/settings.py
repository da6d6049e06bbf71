"""What deployments to clouds are told. The environment is read here, as in pipeline/settings.py."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.deploy.lambda_wheels import PLATFORMS
from pipeline.settings import command
from pipeline.site import SiteError

_STACK = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,127}", re.ASCII)
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", re.ASCII)
# A registry, and the parts of a path, as https://pkg.go.dev/github.com/distribution/reference has them.
_PART = r"[a-z0-9]+(?:(?:[.]|_{1,2}|-+)[a-z0-9]+)*"
_IMAGE = re.compile(rf"(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]+)?/)?{_PART}(?:/{_PART})*", re.ASCII)
# The parameters of infra/lambda/template.yaml that are a person's to choose. AWS's client passes over a name
# that it does not find there, and says nothing.
PARAMETERS = (
    "AllowedOrigins",
    "DailyTokens",
    "KeyArn",
    "LogRetentionDays",
    "MemoryMB",
    "ReservedConcurrency",
)


@dataclass(frozen=True, slots=True)
class LambdaSettings:
    """Where `doit deploy:lambda` brings a package, and the command that talks to AWS.

    `parameters` are those of infra/lambda/template.yaml that are not left as they are, as "Name=value".
    """

    client: tuple[str, ...]
    bucket: str
    stack: str
    architecture: str
    parameters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    """What `doit deploy:container` names its image, and of what it makes it.

    An `image` whose name begins with a registry is pushed there. `client` is the program that builds it;
    None takes whichever is there. A `base` of None is the Dockerfile's own.
    """

    client: str | None
    image: str
    base: str | None

    @property
    def is_pushed(self) -> bool:
        """Whether the name begins with a registry, as all clients tell one: by its dot or port."""
        first, slash, _ = self.image.partition("/")
        return bool(slash) and ("." in first or ":" in first or first == "localhost")


def read_lambda_settings(environ: Mapping[str, str]) -> LambdaSettings:
    """The settings of a deployment to AWS Lambda. An empty variable counts as unset.

    Raises SiteError at the first that makes no sense, and when no bucket is named.
    """
    architecture = environ.get("RALPH_LAMBDA_ARCHITECTURE") or "arm64"
    if architecture not in PLATFORMS:
        choices = ", ".join(PLATFORMS)
        raise SiteError(f"RALPH_LAMBDA_ARCHITECTURE: there is no {architecture!r}; there are {choices}")
    parameters = command(environ, "RALPH_LAMBDA_PARAMETERS", "")
    for parameter in parameters:
        name, equals, _ = parameter.partition("=")
        if name not in PARAMETERS or not equals:
            raise SiteError(
                f"RALPH_LAMBDA_PARAMETERS: {parameter!r} is no parameter; write Name=value with a name of "
                f"{', '.join(PARAMETERS)}"
            )
    return LambdaSettings(
        client=command(environ, "RALPH_AWS", "aws"),
        bucket=_name(
            environ, "RALPH_LAMBDA_BUCKET", "", _BUCKET, "is no bucket; name one that you may write"
        ),
        stack=_name(
            environ, "RALPH_LAMBDA_STACK", "ralph", _STACK, "is no stack's name; write letters and -"
        ),
        architecture=architecture,
        parameters=parameters,
    )


def read_container_settings(environ: Mapping[str, str]) -> ContainerSettings:
    """The settings of a deployment as an image. An empty variable counts as unset.

    Raises SiteError when the image has no name that a registry takes.
    """
    return ContainerSettings(
        client=environ.get("RALPH_CONTAINER_CLIENT") or None,
        image=_name(environ, "RALPH_IMAGE", "ralph", _IMAGE, "is no image's name; write it without a tag"),
        base=environ.get("RALPH_IMAGE_BASE") or None,
    )


def _name(environ: Mapping[str, str], name: str, default: str, pattern: re.Pattern[str], remedy: str) -> str:
    text = environ.get(name) or default
    if not pattern.fullmatch(text):
        raise SiteError(f"{name}: {text!r} {remedy}")
    return text

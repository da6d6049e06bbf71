"""A stand-in for AWS Secrets Manager with one secret in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from tests.fakes.loopback import LoopbackHandler, LoopbackServer, answering

ARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:key"
SECRET = "sk-secret"


@contextmanager
def secrets_manager() -> Iterator[dict[str, str]]:
    """What a function that is to read the secret has in its environment, while the context lasts."""
    with LoopbackServer(("127.0.0.1", 0), _Handler) as server, answering(server):
        yield secret_environ(f"http://127.0.0.1:{server.server_address[1]}")


def secret_environ(url: str) -> dict[str, str]:
    """The same, with Secrets Manager at an address."""
    return {
        "ANTHROPIC_API_KEY_ARN": ARN,
        "AWS_ENDPOINT_URL_SECRETS_MANAGER": url,
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_MAX_ATTEMPTS": "1",
        "PYTHONWARNINGS": "default",  # boto3 has some of its own; it is the runtime's, and does not ship
    }


class _Handler(LoopbackHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert body == {"SecretId": ARN}
        self.reply(200, json.dumps({"SecretString": f"{SECRET}\n"}).encode())

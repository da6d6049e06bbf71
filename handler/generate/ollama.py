"""Answers by a language model on this machine, through Ollama. There is no way from here to another one."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator

import httpx2

from handler.events import Citation, Text
from handler.generate.marks import MarkedText
from handler.generate.ollama_replies import content, explained, finished, object_of, refusal, rows
from handler.generate.ollama_request import OllamaSettings, chat_request
from handler.generate.types import Finished, GeneratorError, Prompt

# Ollama accepts a request at once or does not run; loading a model comes after that.
CONNECT_TIMEOUT_S = 3.0


class OllamaGenerator:
    """Asks a model to answer from the sources, and turns its [n] into citations."""

    name = "ollama"

    def __init__(self, settings: OllamaSettings) -> None:
        self.model: str | None = settings.model
        self._settings = settings

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Text | Citation | Finished]:
        """The answer, piece by piece, Finished last. Raises GeneratorError."""
        settings, answer = self._settings, MarkedText(prompt.hits)
        body = chat_request(prompt, settings)
        with explained(settings.url, settings.timeout_s):
            async with _client(settings) as client:
                await _check_model(client, settings.model)
                async with client.stream("POST", "/api/chat", json=body) as reply:
                    if reply.status_code != 200:
                        await reply.aread()
                        raise refusal(reply, settings.model)
                    async for row in rows(reply):
                        for event in answer.add(content(row)):
                            yield event
                        if row.get("done"):
                            for event in answer.end():
                                yield event
                            yield finished(row, answer.dropped)
                            return
        raise GeneratorError("cut_off", "Ollama stopped in the middle of the answer. Ask again.")


def _client(settings: OllamaSettings) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        base_url=settings.url,
        timeout=httpx2.Timeout(settings.timeout_s, connect=CONNECT_TIMEOUT_S),
        # No proxy and no redirect may carry the pages to another machine.
        trust_env=False,
        follow_redirects=False,
        # Loopback speaks no TLS: an empty context saves the 25 ms of reading certificates.
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
    )


async def _check_model(client: httpx2.AsyncClient, model: str) -> None:
    """Raises GeneratorError unless the model is here, and runs here.

    Ollama passes what some models are asked on to its makers' servers, whatever name they were given.
    """
    reply = await client.post("/api/show", json={"model": model})
    if reply.status_code != 200:
        raise refusal(reply, model)
    if host := object_of(reply.content).get("remote_host"):
        raise GeneratorError(
            "refused", f"{model} does not run on this machine but at {host}: name another OLLAMA_CHAT_MODEL."
        )

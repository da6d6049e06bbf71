"""A generator of answers that says what a test tells it to."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from handler.events import Citation, Text, Usage
from handler.generate.types import Finished, GeneratorError, Prompt

Step = Text | Citation | Finished | Exception


class ScriptedGenerator:
    """Gives the same answer to everything, or fails in it, and keeps what it was asked."""

    name = "claude"

    def __init__(self, *steps: Step, model: str | None = "scripted-1") -> None:
        self.model = model
        self.prompts: list[Prompt] = []
        self.steps: Sequence[Step] = steps or (
            Text("Sun."),
            Finished("end", Usage(input_tokens=100, output_tokens=20)),
        )

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Text | Citation | Finished, None]:
        """The steps; an exception among them is raised."""
        self.prompts.append(prompt)
        for step in self.steps:
            if isinstance(step, Exception):
                raise step
            yield step


OVERLOADED = GeneratorError("overloaded", "Too many questions at the moment.", 10)

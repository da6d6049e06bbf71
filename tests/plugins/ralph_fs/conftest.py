"""The ground that the file tools are tested on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ralph_fs.server import make_server
from tests.fakes.mcp_files import Answer, Ground, answer_of, make_ground, with_client


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """An allowed folder, and others around it that are not."""
    return make_ground(tmp_path)


@pytest.fixture
def call(ground: Ground) -> Callable[..., Answer]:
    """Calls one tool of a server over the ground, as a client does."""
    server = make_server(ground.settings)

    def call_tool(tool: str, **arguments: Any) -> Answer:
        return with_client(server, lambda client: answer_of(client, tool, arguments))

    return call_tool

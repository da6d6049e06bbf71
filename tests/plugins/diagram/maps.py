"""A small map with one of everything, as a spec and as the file that is drawn of it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from plugins.diagram.skills.excalidraw.scripts.build_excalidraw import Document, Element, build, read_spec

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR4nGP4z8CAB+GTG8HSALfKY52fTcuYAAAAAElFTkSuQmCC"
)


def everything() -> dict[str, Any]:
    """A new copy each time, for a test to change."""
    return {
        "title": "One of everything",
        "groups": [
            {"id": "inner", "label": "Inner", "group": "outer"},
            {"id": "outer", "label": "Outer"},
            {"id": "frame", "label": "Frame", "frame": True},
        ],
        "nodes": [
            {"id": "api", "label": "API server", "group": "inner", "link": "https://example.org/api"},
            {"id": "queue", "label": "Queue", "shape": "ellipse", "group": "inner", "color": "green"},
            {"id": "ready", "label": "Ready?", "shape": "diamond", "group": "outer"},
            {"id": "db", "label": "Postgres primary database", "group": "frame"},
            {"id": "replica", "label": "replica", "group": "frame"},
            {"id": "words", "label": "only words", "shape": "text"},
            {"id": "logo", "label": "the logo", "image": "logo.png"},
        ],
        "edges": [
            {"from": "api", "to": "queue", "label": "enqueue"},
            {"from": "queue", "to": "ready", "kind": "straight"},
            {"from": "ready", "to": "db", "kind": "curved", "label": "yes", "both": True},
            {"from": "db", "to": "replica", "dashed": True},
            {"from": "db", "to": "replica", "label": "again"},
            {"from": "api", "to": "api", "label": "retries"},
            {"from": "words", "to": "logo"},
        ],
        "notes": [{"text": "Started by hand.", "near": "db"}, "A note under the map"],
    }


def draw_map(spec: dict[str, Any], folder: Path, file: Document | None = None) -> Document:
    """The drawing as another program reads it, from JSON."""
    (folder / "logo.png").write_bytes(PNG)
    drawing: Document = json.loads(json.dumps(build(read_spec(spec), folder, file)))
    return drawing


def named(file: Document, name: str) -> Element:
    """The element that was drawn as that: "node api", "label of node api", "edge api -> queue"…"""
    return next(e for e in file["elements"] if (e.get("customData") or {}).get("name") == name)

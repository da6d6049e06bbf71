"""Specs by chance: every shape, kind and key, words of every width, ids that are hard to quote."""

from __future__ import annotations

import random
from typing import Any

LABELS = (
    "API server",
    "x",
    "a label that is long enough to be broken into several lines by whoever draws it",
    "two\nlines",
    "日本語のラベルは幅が広い",
    "🦀🦀 crabs 👩‍👩‍👧 family",
    "Café “naïve” — x",
    "AVATAR To. Ty. WAVE",
    "mcp-server/src/rag/chunker.ts",
    "averyveryverylongwordthatnothingbreaksandthatstandsalone",
    "<b>&amp;</b> ]]> -->",
    "Привет, мир",
)
IDS = ("a'b", 'say "so"', "<id>", "id with spaces", "日本", "🦀", "a/b:c", "__proto__")
COLORS = (None, None, None, "red", "blue", "#12b886")


def random_spec(seed: int) -> dict[str, Any]:
    """A spec of one to thirty nodes; the same seed gives the same."""
    chance = random.Random(seed)
    groups = _groups(chance)
    ids = [chance.choice(IDS) if i == 0 else f"n{i}" for i in range(chance.choice((1, 2, 5, 12, 30)))]
    nodes = [_node(chance, id_, i, groups) for i, id_ in enumerate(ids)]
    edges = [_edge(chance, ids) for _ in range(chance.randrange(2 * len(ids)))]
    return {
        "title": chance.choice(("", *LABELS)),
        "theme": chance.choice(("slate", "light", "print", {"base": "light", "font": "hand"})),
        "direction": chance.choice(("right", "down")),
        "groups": groups,
        "nodes": nodes,
        "edges": edges,
        "notes": [{"text": chance.choice(LABELS), "near": chance.choice(ids)}, "A note under the map"],
    }


def _groups(chance: random.Random) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = []
    for i in range(chance.randrange(4)):
        group: dict[str, Any] = {"id": f"g{i}", "label": chance.choice(LABELS[:4])}
        if chance.random() < 0.3:
            group["frame"] = True
        elif groups and not groups[-1].get("frame") and chance.random() < 0.5:
            group["group"] = groups[-1]["id"]
        groups.append(group)
    return groups


def _node(chance: random.Random, id_: str, i: int, groups: list[dict[str, Any]]) -> dict[str, Any]:
    shape = chance.choice(("rectangle", "rectangle", "ellipse", "diamond", "text"))
    node: dict[str, Any] = {"id": id_, "label": chance.choice(LABELS), "shape": shape}
    if groups and chance.random() < 0.6:
        node["group"] = chance.choice(groups)["id"]
    elif chance.random() < 0.1:
        node["at"] = [2000 + 400 * i, 40.5]
    if color := chance.choice(COLORS):
        node["color"] = color
    if chance.random() < 0.1:
        node["link"] = "https://example.org/?q=1&r=%20#top"
    if chance.random() < 0.1:
        node["note"] = chance.choice(LABELS)
    return node


def _edge(chance: random.Random, ids: list[str]) -> dict[str, Any]:
    edge: dict[str, Any] = {
        "from": chance.choice(ids),
        "to": chance.choice(ids),
        "kind": chance.choice(("elbow", "straight", "curved")),
        "both": chance.random() < 0.2,
        "dashed": chance.random() < 0.2,
    }
    if chance.random() < 0.4:
        edge["label"] = chance.choice(LABELS)
    return edge

"""The real Excalidraw in a browser: its release, and the newest whole build of its master branch."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Route

HERE = Path(__file__).resolve().parent
CACHE = HERE.parents[3] / "build" / "excalidraw"
PARTS = ("package.json", "package-lock.json", ".npmrc", "build.mjs", "editor.js")
BUILDS = ("release", "master")
# No server and no network: every request to this origin is answered from the bundle, every other is refused.
ORIGIN = "http://excalidraw.invalid/"
# How far from its shape an arrow may end, in px: Excalidraw itself leaves 5 and half the outline.
GAP = 15

Element = Mapping[str, Any]


class NoEditorError(Exception):
    """The editor cannot be had on this machine, and why."""


def bundled() -> Path:
    """The folder with a page for each build, made by npm and esbuild once for each state of their inputs.

    It takes half a minute and a network the first time. Raises NoEditorError.
    """
    digest = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in PARTS)).hexdigest()[:12]
    folder = CACHE / digest
    if folder.exists():
        return folder
    npm = shutil.which("npm")
    if npm is None:
        raise NoEditorError("needs npm: apt-get install npm")
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock, tempfile.TemporaryDirectory(dir=CACHE) as work:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the suite runs in several processes
        if folder.exists():
            return folder
        for name in PARTS:
            shutil.copy(HERE / name, work)
        install = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
        for command in (install, ["node", "build.mjs", "bundle"]):
            done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
            if done.returncode:
                raise NoEditorError(f"{' '.join(command)} failed: {done.stderr.strip()[-300:]}")
        Path(work, "bundle").rename(folder)
    return folder


class Editor:
    """One tab with one build of the editor."""

    def __init__(self, browser: Browser, build: str, width: int = 1400, height: int = 900) -> None:
        self._files = bundled() / build
        self.build = build
        self.problems: list[str] = []
        context = browser.new_context(viewport={"width": width, "height": height})
        context.route("**/*", self._answer)
        self.page: Page = context.new_page()
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.goto(ORIGIN)
        self.page.wait_for_function("window.editor")

    def close(self) -> None:
        """Closes the tab and all that it keeps."""
        self.page.context.close()

    def changes(self, text: str) -> list[str]:
        """What opening the file, an .excalidraw or an .excalidraw.svg, would change in it."""
        found: list[str] = self.page.evaluate("text => editor.changes(text)", text)
        return found

    def read(self, text: str) -> list[Element]:
        """The elements of a file, whatever carries it."""
        found: list[Element] = self.page.evaluate("text => editor.read(text)", text)
        return found

    def show(self, text: str) -> None:
        """Opens the file for a person to edit, all of it in view."""
        self.page.evaluate("text => editor.show(text)", text)

    def scene(self) -> dict[str, Element]:
        """The elements that are open, by id."""
        found = json.loads(self.page.evaluate("JSON.stringify(editor.scene())"))
        return {element["id"]: element for element in found}

    def saved(self) -> str:
        """The file that a person would save."""
        return str(self.page.evaluate("editor.saved()"))

    def measured(self) -> dict[str, Element]:
        """The texts that are open, by id, with the `text` and size that the editor would give them."""
        return {element["id"]: element for element in self.page.evaluate("editor.measured()")}

    def drag(self, grip: Sequence[float], by: Sequence[float]) -> None:
        """Drags what is at a point of the scene, in full size, by so many pixels."""
        x, y = self.page.evaluate("([x, y]) => editor.center(x, y)", list(grip))
        mouse = self.page.mouse
        mouse.move(x, y)
        mouse.down()
        mouse.move(x + by[0] / 2, y + by[1] / 2, steps=4)
        mouse.move(x + by[0], y + by[1], steps=4)
        mouse.up()
        self.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def screenshot(self, path: Path) -> None:
        """A picture of the whole tab, tools and all."""
        self.page.screenshot(path=path)

    def _answer(self, route: Route) -> None:
        url = route.request.url.partition("?")[0]
        file = self._files / (url.removeprefix(ORIGIN) or "index.html")
        if url.startswith(ORIGIN) and file.is_file():
            route.fulfill(path=file)
        else:
            self.problems.append(f"asked for {url}")
            route.abort()


def clipped_texts(editor: Editor, text: str) -> list[str]:
    """The texts of a file that the editor, which then shows it, would cut off or break into other lines."""
    written = {element["id"]: element for element in json.loads(text)["elements"]}
    editor.show(text)
    return [
        f"{written[id_]['text']!r} in {written[id_]['width']} px: {now['text']!r} takes {now['width']}"
        for id_, now in editor.measured().items()
        if now["text"] != written[id_]["text"] or now["width"] > written[id_]["width"]
    ]


def left_behind(editor: Editor) -> list[str] | None:
    """Drags the node with the most arrows; what of its arrows' ends and its label is not at it afterwards.

    None when nothing that is shown has an arrow, and a label to be held by.
    """
    before = editor.scene()
    nodes = [node for node in before.values() if _is_draggable(node)]
    if not nodes:
        return None
    node = max(nodes, key=lambda node: len(node["boundElements"]))
    label_id = next(bound["id"] for bound in node["boundElements"] if bound["type"] == "text")
    # By its label: a shape without a fill is held by its outline alone.
    editor.drag(_center(before[label_id]), (47, 61))
    after = editor.scene()
    moved = after[node["id"]]
    if (moved["x"], moved["y"]) == (node["x"], node["y"]):
        return [f"{node['id']} stayed where it was"]
    tips = _arrow_tips(after, node["id"])
    if tips.keys() != _arrow_tips(before, node["id"]).keys():
        return [f"{node['id']} lost arrows: it has {sorted(tips)}"]
    places = {**tips, label_id: _center(after[label_id])}
    return [
        f"{name} is at {place}, not at its node" for name, place in places.items() if not _at(place, moved)
    ]


def _arrow_tips(scene: Mapping[str, Element], node_id: str) -> dict[str, list[float]]:
    return {
        f"{arrow['id']}.{key}": [arrow[axis] + arrow["points"][side][i] for i, axis in enumerate("xy")]
        for arrow in scene.values()
        for key, side in (("startBinding", 0), ("endBinding", -1))
        if arrow["type"] == "arrow" and (arrow[key] or {}).get("elementId") == node_id
    }


def _is_draggable(node: Element) -> bool:
    bound = {one["type"] for one in node["boundElements"] or ()}
    return node["type"] in ("rectangle", "ellipse", "diamond") and bound >= {"arrow", "text"}


def _center(element: Element) -> list[float]:
    return [element["x"] + element["width"] / 2, element["y"] + element["height"] / 2]


def _at(point: Sequence[float], element: Element) -> bool:
    x, y = point[0] - element["x"], point[1] - element["y"]
    return bool(-GAP <= x <= element["width"] + GAP and -GAP <= y <= element["height"] + GAP)

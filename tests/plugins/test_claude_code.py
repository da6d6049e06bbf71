"""The channels through Claude Code itself (on npm: @anthropic-ai/claude-code), in a home of its own."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.plugins.build import build_plugins, plugin_folders

ROOT = Path(__file__).resolve().parent.parent.parent
PATH = os.pathsep.join(
    [
        str(ROOT / ".tools" / "npm" / "node_modules" / ".bin"),
        str(ROOT / ".tools" / "bin"),
        os.environ.get("PATH", ""),
    ]
)
CLAUDE = shutil.which("claude", path=PATH)
UV = shutil.which("uv", path=PATH)

pytestmark = pytest.mark.skipif(not (CLAUDE and UV), reason="needs Claude Code and uv")

Claude = Callable[..., str]


@pytest.fixture
def claude(tmp_path: Path) -> Claude:
    """Runs Claude Code with arguments in an empty project, and returns what it prints."""
    for name in ("home", "project"):
        (tmp_path / name).mkdir()
    cache = subprocess.run(
        [str(UV), "cache", "dir"], capture_output=True, text=True, check=True
    ).stdout.strip()
    # Without what a session that runs the tests has set for its own children.
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "ANTHROPIC"))
    }
    environ |= {
        "PATH": PATH,
        "HOME": str(tmp_path / "home"),
        "UV_CACHE_DIR": cache,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [str(CLAUDE), *arguments],
            cwd=tmp_path / "project",
            env=environ,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def marketplace(tmp_path: Path) -> Path:
    """What `doit plugins` makes, after Claude Code's own validator found nothing in it."""
    build_plugins(ROOT, tmp_path / "marketplace", CLAUDE)
    return tmp_path / "marketplace"


def test_every_plugin_installs_from_a_local_path(claude: Claude, marketplace: Path) -> None:
    claude("plugin", "marketplace", "add", str(marketplace))
    for folder in plugin_folders(marketplace):
        claude("plugin", "install", f"{folder.name}@ralph")
    assert re.search(r"Skills \(\d+\) +.*excalidraw", claude("plugin", "details", "diagram@ralph"))


def test_the_server_of_a_plugin_from_git_answers_when_the_repository_is_gone(
    claude: Claude, marketplace: Path, tmp_path: Path
) -> None:
    """By git's configuration, the address that the documentation names is a repository here."""
    git("init", "--quiet", folder=marketplace)
    git("add", "--all", folder=marketplace)
    git(
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.org",
        "commit",
        "--quiet",
        "-m",
        "all",
        folder=marketplace,
    )
    address = 'insteadOf = "{}github.com{}windhamdavid/ralph.git"\n'
    (tmp_path / "home" / ".gitconfig").write_text(
        f'[url "file://{marketplace}"]\n' + address.format("https://", "/") + address.format("git@", ":")
    )
    claude("plugin", "marketplace", "add", "windhamdavid/ralph")
    claude("plugin", "install", "ralph-fs@ralph")
    shutil.rmtree(marketplace)
    assert re.search(r"plugin:ralph-fs:ralph-fs: uv .*/home/\.claude/.*Connected", claude("mcp", "list"))


def git(*arguments: str, folder: Path) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True)


def test_the_command_of_the_readme_registers_a_server_that_answers(claude: Claude, tmp_path: Path) -> None:
    (tmp_path / "home" / "Sites").mkdir()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^claude (mcp add .*)$", readme.replace("\\\n", ""), re.M)
    claude(*shlex.split(line.replace("$PWD", str(ROOT)).replace("$HOME", str(tmp_path / "home"))))
    assert re.search(r"ralph-fs: uv .*Connected", claude("mcp", "list"))

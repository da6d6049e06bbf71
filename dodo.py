"""The task graph: `doit list` shows it, `doit help TASK` explains a task. Wiring only, no work.

export:SITE -> chunk:SITE -> embed -> index -> calibrate -> measure -> seal -> build/current
     |            model ------'                                          |
     '-> gather -----'---------'----------------------------------------'

build/current -> package -> deploy:rsync, deploy:lambda, deploy:container

plugins -> build/plugins

diagram -> build/diagrams
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from doit.exceptions import TaskFailed
from doit.globals import Globals
from doit.task import clean_targets
from doit.tools import config_changed, create_folder, run_once

from handler.bundle.sums import is_whole
from handler.bundle.types import BundleError
from pipeline.console import BuildReporter, disk_refusal, end_without_reader, say_interrupts
from pipeline.deploy.step import DeployError
from pipeline.graph import code_files, holds_on, load_graph, map_files, source_files
from pipeline.layout import Layout
from pipeline.package import program_files
from pipeline.settings import ROOT, read_deploy_settings, read_settings
from pipeline.site import SiteError

try:
    SETTINGS = read_settings(os.environ)
    DEPLOY = read_deploy_settings(os.environ)
    GRAPH = load_graph(SETTINGS)
except SiteError as error:
    raise SystemExit(str(error)) from None
BUILD = Layout(SETTINGS.build)
try:
    BUILD.root.mkdir(parents=True, exist_ok=True)
except OSError as error:
    raise SystemExit(f"{BUILD.root}: no folder to build in ({error.strerror}); set RALPH_BUILD") from None
say_interrupts()
end_without_reader()

DOIT_CONFIG = {
    "default_tasks": ["build"],
    # SQLite, because a JSON file that a full disk or a kill cut off would stop every later build.
    "dep_file": str(BUILD.root / ".doit.db"),
    "backend": "sqlite3",
    "reporter": BuildReporter,
    "verbosity": 2,
    "cleandep": True,
}

COLLECTIONS = SETTINGS.sites / "collections.toml"
PAGES = [BUILD.pages(name) for name in GRAPH.sites]
CHUNKS = [BUILD.chunks(name) for name in GRAPH.sites]
MODEL = [BUILD.model_spec, BUILD.model, BUILD.tokenizer]
# A stage depends on its code too: after an update, the next build does again what may come out differently.
CODE = sorted(
    {*code_files("pipeline", "handler/bundle", "requirements/build.txt")}
    - {*code_files("pipeline/deploy", "pipeline/package.py", "pipeline/plugins", "pipeline/task_map.py")}
)
DESTINATIONS = {
    "rsync": f"{DEPLOY.host}:{DEPLOY.path}",
    "lambda": "AWS Lambda, behind an address that streams",
    "container": "an image, and to the registry of its name",
}
DRY_RUN = [
    {"name": "dry_run", "long": "dry-run", "type": bool, "default": False, "help": "print what would be run"}
]
DIAGRAM = ROOT / "plugins" / "diagram"
DRAW = DIAGRAM / "skills" / "excalidraw" / "scripts" / "build_excalidraw.py"
MAPS = {
    **{spec.name: spec for spec in sorted((DIAGRAM / "examples").glob("*.spec.json"))},
    **{f"{spec.parent.name}-{spec.name}": spec for spec in sorted(SETTINGS.sites.glob("*/*.spec.json"))},
}
QUESTIONS = [site.questions for site in GRAPH.sites.values() if site.questions.exists()]


def stage(name: str, *args: object) -> Callable[[], TaskFailed | None]:
    """A stage as a doit action. The pipeline is imported when it runs, so that doing nothing is instant."""

    def action() -> TaskFailed | None:
        from pipeline import stages  # slow: numpy, onnxruntime, parsers

        return refusing(getattr(stages, name), SETTINGS, *args)

    return action


def deployment(verb: str, target: str) -> Callable[[bool], TaskFailed | None]:
    """What brings the package to a target, or back, as a doit action."""

    def action(dry_run: bool) -> TaskFailed | None:
        from pipeline.deploy import targets  # slow, as the stages are

        return refusing(getattr(targets, f"{verb}_{target}"), DEPLOY, BUILD.package, dry_run)

    return action


def refusing(work: Callable[..., object], *args: object) -> TaskFailed | None:
    """Does the work. What is a person's to mend becomes a failed task with one sentence, not a traceback."""
    try:
        work(*args)
    except (SiteError, BundleError, DeployError) as error:
        return TaskFailed(str(error))
    except (OSError, sqlite3.OperationalError) as error:
        if sentence := disk_refusal(error, BUILD.root):
            return TaskFailed(sentence)
        raise
    return None


def marketplace() -> TaskFailed | None:
    """Makes build/plugins, as a doit action."""
    from pipeline.plugins.build import PluginError, build_plugins

    try:
        build_plugins(ROOT, BUILD.plugins, shutil.which("claude"))
    except (PluginError, OSError) as error:
        return TaskFailed(str(error))
    print(f"{BUILD.plugins}: install from it with `claude plugin marketplace add {BUILD.plugins}`")
    return None


def session_costs() -> TaskFailed | None:
    """Prints what plugins and the server cost a session, as a doit action."""
    from pipeline.plugins.build import PluginError
    from pipeline.plugins.cost import report

    try:
        print(report(ROOT))
    except PluginError as error:
        return TaskFailed(str(error))
    return None


def drawing(spec: Path, name: str) -> dict[str, Any]:
    """A sub-task that draws a map, as a drawing and as a picture that can be edited."""
    targets = [BUILD.diagrams / f"{name}.excalidraw", BUILD.diagrams / f"{name}.excalidraw.svg"]
    outs = [part for target in targets for part in ("--out", str(target))]
    return {
        "name": name,
        "actions": [
            (create_folder, [BUILD.diagrams]),
            [sys.executable, str(DRAW), "--spec", str(spec), *outs],
        ],
        "targets": targets,
        "clean": True,
    }


def write_task_map(spec: Path) -> None:
    """Writes the map of this file's tasks, as a doit action; what is stale is asked of this very run."""
    from pipeline.task_map import load_task_list, stale_tasks, task_map

    tasks = load_task_list(globals())
    found = task_map(tasks, stale_tasks(tasks, Globals.dep_manager), ROOT, BUILD.root)
    spec.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def task_export() -> Iterator[dict[str, Any]]:
    """Write the public pages of every site as markdown, and list what was left out and why"""
    for site in GRAPH.sites.values():
        yield {
            "name": site.name,
            "doc": f"write the public pages of {site.name}",
            "actions": [stage("export_site", site)],
            "file_dep": [*source_files(site), COLLECTIONS, *CODE],
            "targets": [BUILD.pages(site.name)],
            "uptodate": [
                run_once,
                config_changed({"source": site.source}),
                (holds_on, [BUILD.pages(site.name), site, SETTINGS.today]),
            ],
            "clean": [stage("remove_pages", site.name)],
        }
    # Made when they are asked for by name: the one asks a network, the other an application.
    for site in GRAPH.snapshots.values():
        yield {
            "basename": f"export:{site.name}",
            "doc": f"write {site.name} as markdown into {BUILD.snapshots / site.name}, for no bundle",
            "actions": [stage("export_snapshot", site)],
            "uptodate": [False],
            "clean": [stage("remove_snapshot", site.name)],
        }
    yield {
        "name": "report",
        "doc": "list pages in and out, each exclusion with its reason, each warning",
        "actions": [stage("report_export", GRAPH)],
        "task_dep": [f"export:{name}" for name in GRAPH.sites],
    }


def task_curate() -> Iterator[dict[str, Any]]:
    """Copy an export into sites/ for a person to edit; pages that were edited stay as they are"""
    for site in GRAPH.sites.values():
        yield {
            "name": site.name,
            "doc": f"copy the public pages of {site.name} into {SETTINGS.sites / site.name}",
            "actions": [stage("curate_site", site)],
            "file_dep": [BUILD.pages(site.name)],
            "uptodate": [False],
        }


def task_gather() -> dict[str, Any]:
    """Choose the sites of the bundle; stop when one of them vanished or lost half of its pages"""
    return {
        "actions": [stage("gather_sites", GRAPH)],
        "file_dep": [*PAGES, COLLECTIONS, *CODE],
        "targets": [BUILD.gathered],
        "uptodate": [
            config_changed(
                {
                    "accept": sorted(SETTINGS.accept_shrink),
                    "missing": [asdict(site) for site in GRAPH.missing],
                }
            )
        ],
        "clean": [clean_targets, stage("remove_forgotten", GRAPH)],
    }


def task_model() -> dict[str, Any]:
    """Fetch the embedding model's weights and build its graph"""
    return {
        "actions": [stage("make_model")],
        "file_dep": code_files(
            "pipeline/model.py", "pipeline/models.toml", "pipeline/bert.py", "requirements"
        ),
        "targets": MODEL,
        "uptodate": [
            run_once,
            config_changed({"name": SETTINGS.model, "query_instruction": SETTINGS.query_instruction}),
        ],
        "clean": True,
    }


def task_chunk() -> Iterator[dict[str, Any]]:
    """Cut every page into chunks that the model can read"""
    for name in GRAPH.sites:
        yield {
            "name": name,
            "doc": f"cut the pages of {name} into chunks",
            "actions": [stage("chunk_site", name)],
            "file_dep": [BUILD.pages(name), *MODEL, *CODE],
            "targets": [BUILD.chunks(name)],
            "clean": True,
        }


def task_embed() -> dict[str, Any]:
    """Embed the chunks that are new or changed"""
    return {
        "actions": [stage("embed")],
        "file_dep": [BUILD.gathered, *CHUNKS, *MODEL, *CODE],
        "targets": [BUILD.vectors, BUILD.title_vectors],
        "clean": [stage("remove_vectors")],
    }


def task_index() -> dict[str, Any]:
    """Write rag.db: pages, chunks, vectors, keywords"""
    return {
        "actions": [stage("index")],
        "file_dep": [
            BUILD.gathered,
            *CHUNKS,
            BUILD.vectors,
            BUILD.title_vectors,
            *MODEL,
            *CODE,
        ],
        "targets": [BUILD.database],
        "clean": True,
    }


def task_calibrate() -> dict[str, Any]:
    """Set the relevance gate so that nearly all answerable questions pass and off-topic ones do not"""
    return {
        "actions": [stage("calibrate_gate", GRAPH)],
        "file_dep": [
            BUILD.database,
            *MODEL,
            *QUESTIONS,
            *CODE,
        ],
        "targets": [BUILD.gate],
        "clean": True,
    }


def task_measure() -> dict[str, Any]:
    """Measure retrieval and refusal on the sites' questions"""
    return {
        "actions": [stage("measure", GRAPH)],
        "file_dep": [BUILD.database, BUILD.gate, *QUESTIONS, *CODE],
        "targets": [BUILD.evaluation],
        "clean": True,
    }


def task_evaluate() -> dict[str, Any]:
    """Show what was measured, keyword, vector and hybrid search side by side"""
    return {"actions": [stage("report_evaluation", GRAPH)], "task_dep": ["measure"]}


def task_seal() -> dict[str, Any]:
    """Put the bundle together, with its manifest and digests, and make it the current one"""
    return {
        "actions": [stage("seal_bundle", GRAPH)],
        "file_dep": [
            BUILD.gathered,
            BUILD.database,
            *MODEL,
            BUILD.gate,
            BUILD.evaluation,
            COLLECTIONS,
            *CODE,
        ],
        "targets": [BUILD.current_sums],
        "uptodate": [lambda: is_whole(BUILD.current)],
        "clean": [stage("remove_bundles")],
    }


def task_verify() -> dict[str, Any]:
    """Check every byte, word and vector of the current bundle"""
    return {"actions": [stage("verify_current")], "task_dep": ["seal"]}


def task_build() -> dict[str, Any]:
    """Build the bundle of all sites into build/current (the default task)"""
    return {"actions": None, "task_dep": ["seal"]}


def task_plugins() -> dict[str, Any]:
    """Make the plugins' wheels, check the marketplace, put it into build/plugins to install from"""
    return {"actions": [marketplace], "uptodate": [False], "clean": [(shutil.rmtree, [BUILD.plugins, True])]}


def task_tokens() -> dict[str, Any]:
    """Print what each plugin and the MCP server cost a session before they are used"""
    return {"actions": [session_costs], "uptodate": [False]}


def task_diagram() -> Iterator[dict[str, Any]]:
    """Draw the maps of plugins/diagram/examples and of the sites, and the tasks themselves"""
    for name, spec in MAPS.items():
        yield {
            **drawing(spec, name.removesuffix(".spec.json")),
            "doc": f"draw {name}",
            "file_dep": [*map_files(spec), DRAW, DRAW.with_name("font_widths.json")],
        }
    spec = BUILD.diagrams / "tasks.spec.json"
    drawn = drawing(spec, "tasks")
    yield {
        **drawn,
        "doc": "draw the tasks: what makes which files from which, and what is stale",
        "actions": [drawn["actions"][0], (write_task_map, [spec]), drawn["actions"][1]],
        "targets": [spec, *drawn["targets"]],
        "uptodate": [False],
    }


def task_package() -> dict[str, Any]:
    """Put what ships to a host into build/package: the handler, the bundle, its requirements"""
    return {
        "actions": [stage("package_bundle", DEPLOY.accept_private, DEPLOY.persona)],
        "file_dep": [
            BUILD.current_sums,
            *code_files("pipeline/package.py"),
            *(path for _, path in program_files(DEPLOY.persona)),
        ],
        "targets": [BUILD.package_sums],
        "uptodate": [
            config_changed({"private": sorted(DEPLOY.accept_private), "persona": str(DEPLOY.persona)})
        ],
        "clean": [stage("remove_package")],
    }


def task_deploy() -> Iterator[dict[str, Any]]:
    """Bring the package to where RALPH_DEPLOY says; --dry-run prints what would be run"""
    deploy: dict[str, Any] = {"params": DRY_RUN, "task_dep": ["package"], "uptodate": [False]}
    yield {
        "basename": "deploy",
        "doc": f"Bring the package to where RALPH_DEPLOY says ({', '.join(DEPLOY.targets)})",
        "actions": [deployment("deploy", target) for target in DEPLOY.targets],
        **deploy,
    }
    for target, place in DESTINATIONS.items():
        yield {
            "basename": f"deploy:{target}",
            "doc": f"Bring the package to {place}; --dry-run prints what would be run",
            "actions": [deployment("deploy", target)],
            **deploy,
        }


def task_rollback() -> Iterator[dict[str, Any]]:
    """Go back to what was deployed before"""
    yield {
        "basename": "rollback:rsync",
        "doc": f"Make the previous release on {DEPLOY.host} the current one; --dry-run prints how",
        "actions": [deployment("rollback", "rsync")],
        "params": DRY_RUN,
        "uptodate": [False],
    }

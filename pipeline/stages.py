"""The stages as doit runs them: each reads the files of the stages before it and writes its own.

Thin on purpose: what a stage decides stands in the stage's own module. What people are told goes to
standard output, a line or two a stage.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from handler.bundle.counted import counted
from handler.bundle.encoder import Encoder
from handler.bundle.gate import Gate
from handler.bundle.manifest import CollectionSummary, Manifest, Probe
from handler.bundle.passage import passage_text
from handler.bundle.reader import Index
from handler.bundle.types import Chunk
from handler.bundle.verify import verify
from pipeline.calibrate import calibrate, format_calibration
from pipeline.chunk import MAX_CHARS, OVERLAP_CHARS, chunk_pages, read_chunks, unfinished, write_chunks
from pipeline.curate import curate, format_curation
from pipeline.embed import embed_passages, write_vectors
from pipeline.evaluate import evaluate, format_evaluation, misplaced, read_evaluation, write_evaluation
from pipeline.export.exporters import export
from pipeline.export.lastfm import export_last_fm
from pipeline.export.pages import (
    Report,
    exported_sites,
    format_report,
    format_warning,
    read_pages,
    read_report,
    write_export,
)
from pipeline.export.reminders import export_reminders
from pipeline.export.settings import read_last_fm_settings
from pipeline.export.snapshot import write_snapshot
from pipeline.gather import ExportedSite, chosen_sites, gather, read_gathered, write_gathered
from pipeline.graph import Graph
from pipeline.index import title_texts, write_index
from pipeline.layout import Layout
from pipeline.model import build_model, read_spec
from pipeline.package import package
from pipeline.progress import Progress, show_progress
from pipeline.questions import Question, read_questions
from pipeline.seal import read_current, seal
from pipeline.settings import BuildSettings
from pipeline.site import Site
from pipeline.sources import HUB
from pipeline.tokens import token_counter
from pipeline.vector_cache import open_cache

T = TypeVar("T")

# Of one kind: a file of questions for another site would fill the screen.
MAX_WARNINGS = 10
LEFT_OUT = "left out of the bundle: a sample, and other sites have pages"
# The question whose vector every bundle carries, to tell whether another machine embeds as this one did.
PROBE = "What is this site about, and who writes it?"


def export_site(settings: BuildSettings, site: Site) -> None:
    """A site's source -> build/pages/SITE/*.md and build/pages/SITE.json."""
    layout = Layout(settings.build)
    exported = export(site, settings.today)
    write_export(exported, layout.pages(site.name).parent)
    counts = f"{len(exported.exclusions):,} left out, {counted(len(exported.warnings), 'warning')}"
    print(f"  {site.name}: {counted(len(exported.pages), 'page')}, {counts} (doit export lists them)")


def export_snapshot(settings: BuildSettings, site: Site) -> None:
    """Last.fm or Apple's Reminders -> build/snapshots/SITE/*.md, which no stage reads."""
    if site.kind == "last-fm":
        snapshot = export_last_fm(site, read_last_fm_settings(settings.environ), settings.today)
    else:
        snapshot = export_reminders(site)
    folder = Layout(settings.build).snapshots / site.name
    write_snapshot(snapshot, folder)
    _print_warnings([format_warning(warning) for warning in snapshot.warnings])
    places = {"folder": folder, "index": Layout(settings.build).local_index}
    next_step = snapshot.next_step.format_map({name: shlex.quote(str(path)) for name, path in places.items()})
    print(f"  {folder}: {snapshot.counts}. {next_step}")


def report_export(settings: BuildSettings, graph: Graph) -> None:
    """build/pages/*.json -> a listing for people."""
    reports = {name: read_report(Layout(settings.build).pages(name)) for name in graph.sites}
    chosen = {site.name for site in chosen_sites(_exported(graph, reports), graph.collections)}
    for name, report in reports.items():
        print(format_report(report))
        if report.pages and name not in chosen:
            print(f"  {LEFT_OUT}")
    for name in graph.snapshots:
        print(f"{name}: a snapshot, left out of the index; `doit export:{name}` makes it")
    for site in graph.missing:
        print(f"{site.name}: skipped, {site.reason}")


def curate_site(settings: BuildSettings, site: Site) -> None:
    """build/pages/SITE/ -> sites/SITE/, for a person to edit."""
    print(format_curation(site, curate(site, Layout(settings.build).pages(site.name).parent, settings.sites)))


def gather_sites(settings: BuildSettings, graph: Graph) -> None:
    """build/pages/*.json -> build/index/sites.json."""
    layout = Layout(settings.build)
    for absent in graph.missing:
        print(f"  {absent.name}: skipped, {absent.reason}")
    exported = _exported(graph, {name: read_report(layout.pages(name)) for name in graph.sites})
    sites = gather(exported, graph.collections, read_current(settings.build), settings.accept_shrink)
    for each in exported:
        if each.pages and each.name not in sites:
            print(f"  {each.name}: {LEFT_OUT}")
    remove_forgotten(settings, graph)
    write_gathered(sites, layout.gathered)


def make_model(settings: BuildSettings) -> None:
    """Weights from a cache or a public source -> build/model/."""
    build_model(
        Layout(settings.build).model_folder,
        settings.model,
        settings.query_instruction,
        cache=settings.models_cache,
        hub=settings.hub or HUB,
        say=lambda line: print(f"  {line}"),
    )


def chunk_site(settings: BuildSettings, name: str) -> None:
    """build/pages/SITE/ -> build/chunks/SITE.jsonl."""
    layout = Layout(settings.build)
    encoder = _encoder(layout)
    pages = read_pages(layout.pages(name).parent, name)
    path = layout.chunks(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_chunks(chunk_pages(pages, token_counter(encoder), encoder.spec.max_tokens), path)


def embed(settings: BuildSettings) -> None:
    """build/chunks/*.jsonl -> vectors.npy and titles.npy in build/vectors, most of it out of its cache.db."""
    layout = Layout(settings.build)
    chunks, encoder = _chunks(layout), _encoder(layout)
    passages = [passage_text(chunk.title, chunk.heading, chunk.text) for chunk in chunks]
    titles = title_texts(chunks)
    with open_cache(layout.vector_cache) as cache:
        write_vectors(embed_passages(passages, encoder, cache, _new_of(passages, "chunk")), layout.vectors)
        write_vectors(embed_passages(titles, encoder, cache, _new_of(titles, "title")), layout.title_vectors)


def index(settings: BuildSettings) -> None:
    """build/chunks/*.jsonl and build/vectors/*.npy -> build/index/rag.db."""
    layout = Layout(settings.build)
    spec = read_spec(layout.model_folder)
    vectors, title_vectors = np.load(layout.vectors), np.load(layout.title_vectors)
    progress = show_progress("  index", "chunks")
    write_index(layout.database, _chunks(layout), vectors, title_vectors, spec, progress)


def calibrate_gate(settings: BuildSettings, graph: Graph) -> None:
    """build/index/rag.db and the sites' questions -> build/index/gate.json."""
    layout = Layout(settings.build)
    questions = _questions(layout, graph)
    gate = calibrate(Index.open(layout.database), _encoder(layout), questions)
    print(f"  {format_calibration(gate, questions)}")
    layout.gate.write_text(json.dumps(gate.to_dict(), indent=1) + "\n", encoding="utf-8")


def measure(settings: BuildSettings, graph: Graph) -> None:
    """build/index/rag.db, the gate and the sites' questions -> build/reports/evaluation.json."""
    layout = Layout(settings.build)
    index, questions = Index.open(layout.database), _questions(layout, graph)
    _print_warnings(misplaced(index, questions))
    write_evaluation(evaluate(index, _encoder(layout), _gate(layout), questions), layout.evaluation)


def report_evaluation(settings: BuildSettings, graph: Graph) -> None:
    """build/reports/evaluation.json -> a table for people."""
    layout = Layout(settings.build)
    questions = [graph.sites[name].questions for name in sorted(read_gathered(layout.gathered))]
    print(format_evaluation(read_evaluation(layout.evaluation), questions))


def seal_bundle(settings: BuildSettings, graph: Graph) -> None:
    """Everything above -> build/bundles/VERSION, and build/current."""
    layout = Layout(settings.build)
    sites = read_gathered(layout.gathered)
    chunks = _chunks(layout)
    n_chunks = Counter(chunk.collection for chunk in chunks)
    n_pages = Counter(collection for _, collection in {(chunk.url, chunk.collection) for chunk in chunks})
    encoder = _encoder(layout)
    manifest = Manifest(
        version="",
        model=encoder.spec.to_dict(),
        chunker={
            "max_chars": MAX_CHARS,
            "overlap_chars": OVERLAP_CHARS,
            "max_tokens": encoder.spec.max_tokens,
        },
        collections={
            name: CollectionSummary(
                graph.collections[name].title, graph.collections[name].public, n_pages[name], n_chunks[name]
            )
            for name in sorted(n_chunks)
        },
        sites=sites,
        gate=_gate(layout).to_dict(),
        evaluation=json.loads(layout.evaluation.read_text(encoding="utf-8")),
        probe=Probe(PROBE, encoder.embed_query(PROBE)),
    )
    bundle = seal(manifest, layout.database, layout.model, layout.tokenizer, layout.root)
    counts = f"{counted(len(chunks), 'chunk')} of {counted(sum(n_pages.values()), 'page')}"
    print(f"  {bundle} ({counts}, {_size_mb(bundle):.1f} MB)")


def verify_current(settings: BuildSettings) -> None:
    """Checks build/current, every byte and every vector of it."""
    for line in verify(Layout(settings.build).current):
        print(f"  {line}")


def package_bundle(settings: BuildSettings, private: frozenset[str], persona: Path | None) -> None:
    """build/current, the handler and its requirements -> build/package/."""
    layout = Layout(settings.build)
    version = package(layout.current, layout.package, private, persona)
    print(f"  {layout.package} ({version}, {_size_mb(layout.package):.1f} MB)")


def remove_package(settings: BuildSettings) -> None:
    """Removes what was to ship."""
    shutil.rmtree(Layout(settings.build).package, ignore_errors=True)


def remove_pages(settings: BuildSettings, name: str) -> None:
    """Removes a site's exported pages and their report."""
    report = Layout(settings.build).pages(name)
    shutil.rmtree(report.with_suffix(""), ignore_errors=True)
    report.unlink(missing_ok=True)


def remove_forgotten(settings: BuildSettings, graph: Graph) -> None:
    """Removes what was made of sites that sites/ no longer has; that of skipped sites stays."""
    layout = Layout(settings.build)
    skipped = {site.name for site in graph.missing}
    for name in sorted({path.name for path in layout.snapshots.glob("*")} - {*graph.snapshots, *skipped}):
        print(f"  {name}: not in {settings.sites} any more; its snapshot is removed")
        remove_snapshot(settings, name)
    for name in exported_sites(layout.pages_folder, known={*graph.sites, *skipped}):
        print(f"  {name}: not in {settings.sites} any more; its pages and chunks are removed")
        chunks = layout.chunks(name)
        for path in (chunks, unfinished(chunks)):
            path.unlink(missing_ok=True)
        remove_pages(settings, name)  # and with them, last, what tells that they are the build's own


def remove_snapshot(settings: BuildSettings, name: str) -> None:
    """Removes what a snapshot is made of."""
    shutil.rmtree(Layout(settings.build).snapshots / name, ignore_errors=True)


def remove_vectors(settings: BuildSettings) -> None:
    """Removes the vectors, the cache with them."""
    shutil.rmtree(Layout(settings.build).vectors.parent, ignore_errors=True)


def remove_bundles(settings: BuildSettings) -> None:
    """Removes every bundle and `current`."""
    layout = Layout(settings.build)
    layout.current.unlink(missing_ok=True)
    shutil.rmtree(layout.root / "bundles", ignore_errors=True)


def _print_warnings(sentences: Sequence[str]) -> None:
    for sentence in sentences[:MAX_WARNINGS]:
        print(f"  warning: {sentence}")
    if len(sentences) > MAX_WARNINGS:
        print(f"  warning: and {len(sentences) - MAX_WARNINGS} more of them")


def _exported(graph: Graph, reports: Mapping[str, Report]) -> list[ExportedSite]:
    return [
        ExportedSite(
            name, graph.sites[name].collection, tuple((page.url, page.path) for page in report.pages)
        )
        for name, report in reports.items()
    ]


def _chunks(layout: Layout) -> list[Chunk]:
    """The chunks of the bundle, in the order of the rows of vectors.npy."""
    return [
        chunk for name in sorted(read_gathered(layout.gathered)) for chunk in read_chunks(layout.chunks(name))
    ]


def _questions(layout: Layout, graph: Graph) -> list[Question]:
    """The questions of the sites that are in the bundle."""
    names = sorted(read_gathered(layout.gathered))
    return [question for name in names for question in read_questions(graph.sites[name].questions)]


def _new_of(texts: Sequence[str], what: str) -> Progress:
    """Progress that first says how many of the texts are new."""

    def show(items: Iterable[T], total: int) -> Iterable[T]:
        print(f"  {total:,} of {counted(len(texts), what)} new", flush=True)
        return show_progress("  embed", f"{what}s")(items, total)

    return show


def _encoder(layout: Layout) -> Encoder:
    return Encoder.load(layout.model_folder, read_spec(layout.model_folder))


def _gate(layout: Layout) -> Gate:
    return Gate.from_dict(json.loads(layout.gate.read_text(encoding="utf-8")))


def _size_mb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6

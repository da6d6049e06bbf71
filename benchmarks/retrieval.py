"""How well questions find their pages, and how well the gate tells them from others.

    python -m benchmarks.retrieval --data DIR --corpora DIR [--model NAME] [--sets squad2_A,scifact,til,…]

Through the whole product: each document becomes one markdown page of a site, `doit build` makes the bundle,
`ralph search --batch` answers. Sites of the corpora are asked the texts of their own links, and their pages'
descriptions. The gate is calibrated on every second question and measured on the others; where there are few,
once more on random halves, as it matters much which are in which.
Vectors are kept in build/benchmarks/retrieval, so that only the first run takes long.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from benchmarks.site_questions import SITES, SiteSet, copy_without_descriptions, link_texts
from handler.bundle.encoder import Encoder, ModelSpec
from handler.bundle.manifest import read_manifest
from handler.bundle.reader import Index
from handler.bundle.types import Mode
from pipeline.calibrate import DEFAULT_GATES, KEPT, fit_gate, read_off_topic, sample, without_answered

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "benchmarks" / "retrieval"
MODES: tuple[Mode, ...] = get_args(Mode)
DEPTH = 10
# Above this share of its words in one window of the site, an off-topic question may be answered there.
MAX_OVERLAP = 0.6
BASE_URL = "https://example.org/"
# Of so few questions, which are in which half decides much.
FEW = 100
N_RANDOM_HALVES = 200


@dataclass(frozen=True, slots=True)
class Task:
    """Questions with the pages that answer them: their grades, by URL or by path in the source."""

    name: str
    questions: Mapping[str, str]
    grades: Mapping[str, Mapping[str, float]]
    collection: str


@dataclass(frozen=True, slots=True)
class GateTask:
    """Questions for the gate: those to keep, those to refuse, and near misses."""

    name: str
    answerable: Sequence[str]
    off_topic: Sequence[str]
    near_misses: Sequence[str]


def main() -> None:
    """Prints one table of ranking quality a set, and one line for its gate."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the retrieval sets")
    parser.add_argument("--corpora", type=Path, required=True, help="folder of the sites")
    parser.add_argument("--model", default="bge-small-en-v1.5")
    parser.add_argument("--sets", default=",".join(("squad2_A", "scifact", "til", *SITES)))
    arguments = parser.parse_args()
    for name in arguments.sets.split(","):
        product = Product(WORK / arguments.model / name, arguments.model, arguments.corpora)
        gates: list[GateTask] = []
        if name == "til":
            tasks = til_tasks(arguments.data)
            gates = til_gates(arguments.data, tasks)
            product.write_til()
            product.build()
        elif name in SITES:
            descriptions = product.write_site(arguments.corpora / name, SITES[name])
            product.build()
            tasks = site_tasks(name, product, descriptions)
        else:
            tasks = [document_task(arguments.data / name)]
            gates = document_gates(arguments.data / name)
            product.write_documents(arguments.data / name)
            product.build()
        for task in tasks:
            print(f"{arguments.model} {task.name}, {len(task.questions)} questions")
            for mode in MODES:
                print(
                    f"  {mode:8} {figures(task, product.search(task.questions, mode, task.collection))}",
                    flush=True,
                )
        for gate in gates:
            product.build(gate)
            print_gate(product, gate)
            if len(gate.answerable) < FEW:
                print_random_halves(product, gate)


class Product:
    """The sites, the build and the commands of one set."""

    def __init__(self, folder: Path, model: str, corpora: Path) -> None:
        self.sites, self.build_folder = folder / "sites", folder / "build"
        self.content = folder / "content"
        self.questions = self.sites / "none.jsonl"
        self.environ = {
            **os.environ,
            "RALPH_SITES": str(self.sites),
            "RALPH_BUILD": str(self.build_folder),
            "EMBED_MODEL": model,
            "RALPH_TIL": str(corpora / "til"),
            "RALPH_DAVIDAWINDHAM": str(corpora / "dw-posts"),
        }
        self.sites.mkdir(parents=True, exist_ok=True)

    def write_documents(self, data: Path) -> None:
        """One site of a retrieval set's documents, a page each, named by its place in the set."""
        (self.sites / "collections.toml").write_text("[set]\npublic = true\n", encoding="utf-8")
        site = self.sites / "set"
        site.mkdir(exist_ok=True)
        (site / "site.toml").write_text(
            f'kind = "markdown"\nsource = "."\nbase_url = "{BASE_URL}"\ncollection = "set"\n',
            encoding="utf-8",
        )
        for number, row in enumerate(read_json_lines(data / "corpus.jsonl")):
            text = f"---\ntitle: {json.dumps(row['title'], ensure_ascii=False)}\n---\n\n{row['text']}\n"
            (site / page_path(number)).write_text(text, encoding="utf-8")
        self.questions = site / "questions.jsonl"

    def write_site(self, corpus: Path, site: SiteSet) -> dict[str, str]:
        """A site of the corpora without its pages' descriptions, which are returned by path."""
        (self.sites / "collections.toml").write_text("[site]\npublic = true\n", encoding="utf-8")
        folder = self.sites / "site"
        folder.mkdir(exist_ok=True)
        toml = f'collection = "site"\nsource = "{self.content}"\n{site.toml}'
        (folder / "site.toml").write_text(toml, encoding="utf-8")
        shutil.rmtree(self.content, ignore_errors=True)
        return copy_without_descriptions(corpus / site.content, self.content)

    def write_til(self) -> None:
        """The two sites as this project describes them."""
        for name in ("til", "davidawindham.com"):
            (self.sites / name).mkdir(exist_ok=True)
            toml = (ROOT / "sites" / name / "site.toml").read_text(encoding="utf-8")
            (self.sites / name / "site.toml").write_text(toml, encoding="utf-8")
        collections = (ROOT / "sites" / "collections.toml").read_text(encoding="utf-8")
        (self.sites / "collections.toml").write_text(collections, encoding="utf-8")
        self.questions = self.sites / "til" / "questions.jsonl"

    def build(self, gate: GateTask | None = None) -> None:
        """Runs `doit build`, with the gate fitted to one half of some questions."""
        self.questions.unlink(missing_ok=True)
        if gate is not None:
            write_questions(self.questions, gate)
        subprocess.run([sys.executable, "-m", "doit", "build"], cwd=ROOT, env=self.environ, check=True)

    def search(
        self,
        questions: Mapping[str, str],
        mode: Mode = "hybrid",
        collection: str = "",
        *,
        gated: bool = False,
    ) -> list[dict[str, Any]]:
        """What `ralph search --batch` prints for the questions, in their order."""
        command = [sys.executable, "-m", "handler", "search", "--batch", "-", "--top-k", str(DEPTH)]
        command += ["--bundle", str(self.build_folder / "current"), "--mode", mode]
        command += ["--collection", collection] if collection else []
        command += [] if gated else ["--no-gate"]
        batch = "".join(json.dumps({"id": key, "text": text}) + "\n" for key, text in questions.items())
        done = subprocess.run(
            command, cwd=ROOT, env=self.environ, input=batch, capture_output=True, text=True, check=True
        )
        return [json.loads(line) for line in done.stdout.splitlines()]


def document_task(data: Path) -> Task:
    """The test questions of a retrieval set."""
    ids = {row["id"]: page_path(i) for i, row in enumerate(read_json_lines(data / "corpus.jsonl"))}
    return Task(data.name, read_texts(data / "queries.jsonl"), read_grades(data / "qrels.tsv", ids), "")


def document_gates(data: Path) -> list[GateTask]:
    """The gate's questions of a retrieval set, where it has off-topic ones."""
    if not (data / "queries_offtopic.jsonl").exists():
        return []
    names = ("queries.jsonl", "queries_offtopic.jsonl", "queries_unanswerable.jsonl")
    return [GateTask("", *(list(read_texts(data / name).values()) for name in names))]


def site_tasks(name: str, product: Product, descriptions: Mapping[str, str]) -> list[Task]:
    """The texts of a site's links, and the descriptions of its pages, where it has some."""
    index = Index.open(product.build_folder / "current" / "rag.db")
    url_by_path = {chunk.path: chunk.url for chunk in index.chunks(range(len(index)))}
    paths: dict[str, list[str]] = {}
    for path, description in descriptions.items():
        if path in url_by_path:
            paths.setdefault(description, []).append(path)
    asked: dict[str, Mapping[str, Iterable[str]]] = {
        "link texts": link_texts(product.content, url_by_path),
        "descriptions": paths,
    }
    return [
        Task(
            f"{name} {kind}",
            {text: text for text in pages},
            {text: dict.fromkeys(right, 1.0) for text, right in pages.items()},
            "",
        )
        for kind, pages in asked.items()
        if pages
    ]


def til_tasks(data: Path) -> list[Task]:
    """Link texts, descriptions and questions of the site til, the questions together with its sister's."""
    with (data / "til_queries" / "urls.tsv").open(encoding="utf-8") as file:
        urls = {row["route"]: row["public_url"] for row in csv.DictReader(file, delimiter="\t")}
    tasks = [
        Task(
            f"til {kind}s",
            read_texts(data / "til_queries" / f"{kind}_queries.jsonl"),
            read_grades(data / "til_queries" / f"{kind}_qrels.tsv", urls),
            "daw_til",
        )
        for kind in ("anchor", "description")
    ]
    rows = [row for row in read_json_lines(data / "til_questions" / "questions.jsonl") if row["expected"]]
    grades = {row["id"]: dict.fromkeys(row["expected"], 1.0) for row in rows}
    return [*tasks, Task("til_questions", {row["id"]: row["text"] for row in rows}, grades, "")]


def til_gates(data: Path, tasks: Sequence[Task]) -> list[GateTask]:
    """The site's questions against questions of the world at large; then link texts and descriptions too."""
    rows = list(read_json_lines(data / "til_questions" / "questions.jsonl"))
    off_topic = read_json_lines(data / "offtopic" / "questions.jsonl")
    others = [row["text"] for row in off_topic if row["overlap"] <= MAX_OVERLAP]
    near_misses = [row["text"] for row in rows if not row["expected"]]
    asked = [row["text"] for row in rows if row["expected"]]
    everything = [text for task in tasks for text in task.questions.values()]
    return [
        GateTask("questions", asked, others, near_misses),
        GateTask("questions, link texts and descriptions", everything, others, near_misses),
    ]


def write_questions(path: Path, gate: GateTask) -> None:
    """Every second question of both kinds, for the calibration."""
    halves = [(text, [BASE_URL]) for text in gate.answerable[::2]] + [
        (text, []) for text in gate.off_topic[::2]
    ]
    lines = (
        json.dumps({"id": str(i), "text": text, "expected": expected}) + "\n"
        for i, (text, expected) in enumerate(halves)
    )
    path.write_text("".join(lines), encoding="utf-8")


def print_gate(product: Product, gate: GateTask) -> None:
    """The shares that pass, of the halves that the calibration has not seen."""
    samples = {
        "answerable kept": gate.answerable[1::2],
        "off-topic accepted": gate.off_topic[1::2],
        "near misses accepted": gate.near_misses,
    }
    shares = []
    for label, texts in samples.items():
        found = product.search({str(i): text for i, text in enumerate(texts)}, gated=True)
        shares.append(f"{label} {sum(each['gate']['accepted'] for each in found) / len(found):.1%}")
    print(f"  gate     {', '.join(shares)}  {gate.name}", flush=True)


def print_random_halves(product: Product, gate: GateTask) -> None:
    """The mean shares that pass gates fitted to random halves, and that of one that keeps just KEPT."""
    folder = product.build_folder / "current"
    encoder = Encoder.load(folder, ModelSpec.from_dict(read_manifest(folder).model))
    index = Index.open(folder / "rag.db")
    good, bad, built_in = (
        sample(index, encoder, texts) for texts in (gate.answerable, gate.off_topic, read_off_topic())
    )
    shares = []
    for seed in range(N_RANDOM_HALVES):
        random = np.random.default_rng(seed)
        in_good, in_bad = (random.permutation(len(kind)) % 2 == 0 for kind in (good, bad))
        seen = good.where(in_good)
        others = without_answered(built_in, seen, DEFAULT_GATES[encoder.spec.name])
        fitted = fit_gate(seen, bad.where(in_bad).and_also(others))
        kept, accepted = (
            kind.evidence @ np.array(fitted.weights) + kind.vectors @ np.array(fitted.direction)
            for kind in (good.where(~in_good), bad.where(~in_bad))
        )
        cut = fitted.threshold
        exact = np.quantile(kept, 1 - KEPT)
        shares.append([np.mean(kept >= cut), np.mean(accepted >= cut), np.mean(accepted >= exact)])
    n_kept, n_accepted, n_exact = np.mean(shares, axis=0)
    print(
        f"  gate     on {N_RANDOM_HALVES} random halves: answerable kept {n_kept:.1%}, off-topic accepted "
        f"{n_accepted:.1%}; at {KEPT:.0%} kept it were {n_exact:.1%}",
        flush=True,
    )


def figures(task: Task, results: Iterable[dict[str, Any]]) -> str:
    """nDCG@10 (Järvelin and Kekäläinen 2002), hit@1, hit@6 and MRR@10 of a task, as one line."""
    ndcg, ranks = [], []
    for result in results:
        grades = task.grades[result["id"]]
        gains = [grades.get(hit["url"], grades.get(hit["path"], 0.0)) for hit in result["hits"]]
        ndcg.append(discounted(gains) / discounted(sorted(grades.values(), reverse=True)[:DEPTH]))
        ranks.append(next((rank for rank, gain in enumerate(gains, start=1) if gain), math.inf))
    shares = [sum(rank <= depth for rank in ranks) / len(ranks) for depth in (1, 6)]
    mrr = sum(1 / rank for rank in ranks) / len(ranks)
    return f"nDCG@10 {sum(ndcg) / len(ndcg):.4f}  hit@1 {shares[0]:.3f}  hit@6 {shares[1]:.3f}  MRR {mrr:.3f}"


def discounted(gains: Sequence[float]) -> float:
    """The discounted cumulative gain of gains in the order of ranks."""
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def page_path(number: int) -> str:
    """The file of a document, by its place in the set."""
    return f"d{number:05}.md"


def read_json_lines(path: Path) -> Iterable[dict[str, Any]]:
    """The objects of a JSON-lines file."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def read_texts(path: Path) -> dict[str, str]:
    """The texts of a file of questions, by id."""
    return {row["id"]: row["text"] for row in read_json_lines(path)}


def read_grades(path: Path, names: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """The grades of a qrels file by question, then by the name that stands for the document."""
    grades: dict[str, dict[str, float]] = {}
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            grades.setdefault(row["query-id"], {})[names[row["corpus-id"]]] = float(row["score"])
    return grades


if __name__ == "__main__":
    main()

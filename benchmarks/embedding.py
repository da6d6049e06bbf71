"""Texts embedded a second: Ralph against fastembed and Transformers.js, same weights, texts and run.

    python -m benchmarks.embedding [--corpora DIR] [--texts N] [--rounds N]

The rivals are installed into build/benchmarks by pip and npm, and run the published graph of
bge-small-en-v1.5 at fp32 and quantised to int8 as its publishers do it, each with the batch size that is
faster for it. Rounds alternate between the contestants, so that a busy minute falls on all; the best
round counts. Texts are sections of markdown files below DIR, or of Ralph's own documentation.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from handler.bundle.encoder import Encoder
from pipeline.embed import embed_passages
from pipeline.fetch import default_cache, fetch_model
from pipeline.model import build_model, load_models
from pipeline.vector_cache import open_cache

MODEL = "bge-small-en-v1.5"
ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "benchmarks"
PUBLISHED = WORK / "published" / MODEL
TEXT_CHARS = 1500  # the chunker's own limit
BATCHES = (1, 16)
# Vectors of one text may differ by quantisation, not by pooling, prefix or tokens.
SAME_MODEL_COSINE = 0.98

Contestant = Callable[[], tuple[float, Sequence[Sequence[float]]]]


def main() -> None:
    """Prints one line a contestant, and how many times as fast Ralph is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--corpora", type=Path, default=ROOT / "sites", help="folder with markdown files")
    parser.add_argument("--texts", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()

    spec = build_model(WORK / "model", MODEL, say=lambda line: print(line, file=sys.stderr))
    encoder = Encoder.load(WORK / "model", spec)
    texts = sections(arguments.corpora, encoder, arguments.texts)
    (WORK / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    prepare_published()
    contestants = {
        "ralph": lambda: ralph(encoder, texts),
        **fastembed_contestants(),
        **transformersjs_contestants(),
    }
    rounds = [run_round(contestants) for _ in range(arguments.rounds)]
    seconds = {name: min(done[name] for done in rounds) for name in contestants}
    report(seconds, len(texts))


def run_round(contestants: Mapping[str, Contestant]) -> dict[str, float]:
    """Seconds of each contestant, one after the other. Their vectors must tell of the same model."""
    seconds = {}
    expected: np.ndarray[tuple[int, int], np.dtype[np.float64]] | None = None
    for name, contestant in contestants.items():
        seconds[name], vectors = contestant()
        found = np.array(vectors)
        expected = found if expected is None else expected
        cosine = float((found * expected).sum(axis=1).min())
        if cosine < SAME_MODEL_COSINE:
            raise SystemExit(f"{name} embeds with another model: cosine {cosine:.3f}")
    return seconds


def ralph(encoder: Encoder, texts: Sequence[str]) -> tuple[float, Sequence[Sequence[float]]]:
    """As the build does it, its cache included, and empty."""
    first = [encoder.embed_passage(text).tolist() for text in texts[:2]]
    path = WORK / "vectors.db"
    path.unlink(missing_ok=True)
    start = time.perf_counter()
    with open_cache(path) as cache:
        embed_passages(texts, encoder, cache)
    return time.perf_counter() - start, first


def fastembed_contestants() -> dict[str, Contestant]:
    """fastembed in an environment of its own."""
    folder = WORK / "fastembed"
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "fastembed"], check=True)
    program = Path(__file__).with_name("fastembed_embed.py")
    return {
        f"fastembed {setting}, batches of {batch}": _program(
            [python, program, PUBLISHED, file, batch, WORK / "texts.json"]
        )
        for setting, file in (("fp32", "onnx/model.onnx"), ("int8", "onnx/model_quantized.onnx"))
        for batch in BATCHES
    }


def transformersjs_contestants() -> dict[str, Contestant]:
    """Transformers.js in Node, on its native runtime."""
    folder = WORK / "transformersjs"
    shutil.copytree(Path(__file__).with_name("transformersjs"), folder, dirs_exist_ok=True)
    if not (folder / "node_modules").exists():
        # The runtime's install script would fetch GPU libraries that nobody uses here.
        subprocess.run(
            ["npm", "install", "--silent", "--no-audit", "--no-fund", "--onnxruntime-node-install=skip"],
            cwd=folder,
            check=True,
        )
    return {
        f"transformers.js {setting}, batches of {batch}": _program(
            ["node", folder / "embed.mjs", PUBLISHED.parent, MODEL, dtype, batch, WORK / "texts.json"]
        )
        for setting, dtype in (("fp32", "fp32"), ("int8", "q8"))
        for batch in BATCHES
    }


def prepare_published() -> None:
    """The published model as both rivals expect it in a folder, and its quantised form beside it."""
    model = load_models()[MODEL]
    files = fetch_model(MODEL, model.weights, model.tokenizer, model.sources, default_cache())
    (PUBLISHED / "onnx").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(files.tokenizer, PUBLISHED / "tokenizer.json")
    shutil.copyfile(files.weights, PUBLISHED / "onnx" / "model.onnx")
    special = {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")}
    tables = {
        "config.json": {"model_type": "bert", "pad_token_id": 0, "max_position_embeddings": 512},
        "tokenizer_config.json": {**special, "tokenizer_class": "BertTokenizer", "model_max_length": 512},
        "special_tokens_map.json": special,
    }
    for name, table in tables.items():
        (PUBLISHED / name).write_text(json.dumps(table), encoding="utf-8")
    quantised = PUBLISHED / "onnx" / "model_quantized.onnx"
    if not quantised.exists():
        # Not before the encoder, which loads ONNX Runtime in such a way that it reports to nobody.
        from onnxruntime.quantization import QuantType, quantize_dynamic

        # The settings of the conversion script of Transformers.js, whose files its users run.
        quantize_dynamic(
            files.weights, quantised, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8
        )


def sections(folder: Path, encoder: Encoder, n_texts: int) -> list[str]:
    """Up to so many texts of a chunk's size, evenly taken from the markdown below a folder."""
    texts = []
    for path in sorted(folder.rglob("*.md")):
        text = path.read_text("utf-8", errors="replace")
        pieces = [text[start : start + TEXT_CHARS] for start in range(0, len(text), TEXT_CHARS)]
        texts += [piece for piece in pieces if 20 <= encoder.count_tokens(piece) <= encoder.spec.max_tokens]
    if not texts:
        raise SystemExit(f"{folder} has no markdown")
    return texts[:: max(1, len(texts) // n_texts)][:n_texts]


def report(seconds: Mapping[str, float], n_texts: int) -> None:
    """Prints texts a second, and the ratio to the fastest rival at each setting."""
    for name, time_s in seconds.items():
        print(f"{n_texts / time_s:8.1f} texts/s  {name}")
    for setting in ("fp32", "int8"):
        fastest = min((name for name in seconds if setting in name), key=lambda name: seconds[name])
        print(f"{seconds[fastest] / seconds['ralph']:8.2f} times as fast as {fastest}")


def _program(argv: Sequence[str | Path | int]) -> Contestant:
    def run() -> tuple[float, Sequence[Sequence[float]]]:
        done = subprocess.run([str(part) for part in argv], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(map(str, argv))}\n{done.stderr}")
        table = json.loads(done.stdout.splitlines()[-1])
        return table["seconds"], table["vectors"]

    return run


if __name__ == "__main__":
    main()

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from handler.bundle.layout import FILES, SUMS
from handler.bundle.manifest import Manifest, Probe, SiteSummary, read_manifest
from handler.bundle.sums import check_sums
from handler.bundle.types import BundleError
from pipeline.seal import BUNDLES_KEPT, read_current, seal

MANIFEST = Manifest(
    version="",
    model={"name": "tiny"},
    chunker={"max_chars": 1500},
    collections={},
    sites={"blog": SiteSummary("notes", 3)},
    gate={},
    evaluation={},
    probe=Probe("hello", np.array([0.6, 0.8], np.float32)),
)


def sealed(tmp_path: Path, content: str = "rows", manifest: Manifest = MANIFEST) -> Path:
    inputs = {}
    for name in ("rag.db", "model.onnx", "tokenizer.json"):
        inputs[name] = tmp_path / f"in-{name}"
        inputs[name].write_text(f"{name}: {content}")
    return seal(
        manifest, inputs["rag.db"], inputs["model.onnx"], inputs["tokenizer.json"], tmp_path / "build"
    )


def test_a_sealed_bundle_is_whole_and_current(tmp_path: Path) -> None:
    bundle = sealed(tmp_path)
    check_sums(bundle)
    assert sorted(path.name for path in bundle.iterdir()) == sorted((*FILES, SUMS))
    assert (tmp_path / "build" / "current").resolve() == bundle
    assert read_manifest(bundle).version == bundle.name


def test_the_manifest_survives_the_round_trip(tmp_path: Path) -> None:
    found = read_manifest(sealed(tmp_path))
    assert found.to_json() == replace(MANIFEST, version=found.version).to_json()
    assert found.probe.vector.tolist() == MANIFEST.probe.vector.tolist()


def test_equal_content_gets_an_equal_version_and_other_content_another(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    first, second = sealed(tmp_path / "a"), sealed(tmp_path / "b")
    assert [(first / name).read_bytes() for name in (*FILES, SUMS)] == [
        (second / name).read_bytes() for name in (*FILES, SUMS)
    ]
    assert sealed(tmp_path / "a", "other rows").name != first.name
    assert sealed(tmp_path / "a", manifest=replace(MANIFEST, gate={"at": 1})).name != first.name


def test_the_last_three_bundles_are_kept_and_a_repeated_one_counts_as_new(tmp_path: Path) -> None:
    for age, content in enumerate(("0", "1", "2")):
        os.utime(sealed(tmp_path, content), (age, age))
    oldest = tmp_path / "build" / "bundles" / sealed(tmp_path, "0").name
    os.utime(oldest, (0, 0))
    sealed(tmp_path, "3")
    assert not oldest.exists()
    again = sealed(tmp_path, "1")
    newest = sealed(tmp_path, "4")
    kept = {path.name for path in (tmp_path / "build" / "bundles").iterdir()}
    assert len(kept) == BUNDLES_KEPT
    assert {again.name, newest.name} < kept


def test_what_an_interrupted_seal_left_behind_is_removed(tmp_path: Path) -> None:
    leftover = tmp_path / "build" / "bundles" / ".incoming-1"
    leftover.mkdir(parents=True)
    (leftover / "rag.db").write_text("half")
    sealed(tmp_path)
    assert not leftover.exists()


def test_a_damaged_bundle_of_the_same_version_is_replaced(tmp_path: Path) -> None:
    bundle = sealed(tmp_path)
    (bundle / "rag.db").write_text("damaged")
    sealed(tmp_path)
    check_sums(bundle)


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_byte_in_any_file_is_found(tmp_path: Path, name: str) -> None:
    path = sealed(tmp_path) / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(BundleError, match=f"damaged: {name}"):
        check_sums(path.parent)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_or_truncated_file_is_found(tmp_path: Path, name: str) -> None:
    path = sealed(tmp_path) / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(BundleError, match=f"damaged: {name}"):
        check_sums(path.parent)
    path.unlink()
    with pytest.raises(BundleError, match=f"damaged: {name} is missing"):
        check_sums(path.parent)


@pytest.mark.parametrize("text", ["", "0000  rag.db\n", "x" * 80])
def test_a_damaged_hash_list_is_found(tmp_path: Path, text: str) -> None:
    bundle = sealed(tmp_path)
    (bundle / SUMS).write_text(text)
    with pytest.raises(BundleError, match="does not list exactly"):
        check_sums(bundle)
    (bundle / SUMS).unlink()
    with pytest.raises(BundleError, match="not a whole bundle"):
        check_sums(bundle)


def test_a_newer_format_is_refused_in_one_sentence(tmp_path: Path) -> None:
    bundle = sealed(tmp_path, manifest=replace(MANIFEST, format_version=99))
    with pytest.raises(BundleError, match=r"bundle format 99 .* update Ralph"):
        read_manifest(bundle)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format_version": 1}', "\x00"])
def test_a_manifest_that_is_none_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(BundleError, match=r"manifest\.json"):
        read_manifest(tmp_path)


def test_a_folder_without_a_manifest_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="is no bundle"):
        read_manifest(tmp_path)
    assert read_current(tmp_path) is None

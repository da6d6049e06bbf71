from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import numpy as np
import pytest
import sqlite_vec

from handler.bundle.bundle import Bundle
from handler.bundle.database import open_database
from handler.bundle.manifest import read_manifest
from handler.bundle.sums import content_version, write_sums
from handler.bundle.types import BundleError
from handler.bundle.verify import verify

MakeBundle = Callable[..., Path]


def tampered(bundle: Path, sql: str) -> Path:
    """A copy of a bundle whose database was changed and whose digests and version were made to fit."""
    copy = bundle.with_name("tampered")
    shutil.copytree(bundle, copy)
    connection = apsw.Connection(str(copy / "rag.db"))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.execute(sql)
    connection.close()
    return resealed(copy)


def resealed(bundle: Path, **changes: object) -> Path:
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest |= changes
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    manifest["version"] = content_version(bundle, read_manifest(bundle))
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    write_sums(bundle)
    return bundle


def failure(bundle: Path) -> str:
    with pytest.raises(BundleError) as error:
        list(verify(bundle))
    return str(error.value)


def test_a_whole_bundle_passes_every_check(make_bundle: MakeBundle) -> None:
    lines = list(verify(make_bundle()))
    assert [line.split(":")[0] for line in lines] == [
        "files",
        "schema",
        "counts",
        "keywords",
        "vectors",
        "model",
    ]
    assert lines[2] == "counts: diary 1 page, 1 chunk, notes 3 pages, 3 chunks"


def test_a_bundle_without_pages_passes_and_knows_nothing(make_bundle: MakeBundle) -> None:
    bundle = make_bundle({})
    assert len(list(verify(bundle))) == 6
    assert Bundle.open(bundle).search("garden").hits == ()


def test_keywords_out_of_step_are_found_where_sqlite_says_ok(make_bundle: MakeBundle) -> None:
    bundle = tampered(make_bundle(), "UPDATE chunk SET text = replace(text, 'nginx', 'apache')")
    assert open_database(bundle / "rag.db").execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert "the keyword index is out of step at 'apach' in chunk" in failure(bundle)


def test_a_chunk_without_keywords_is_found(make_bundle: MakeBundle) -> None:
    bundle = tampered(make_bundle(), "INSERT INTO chunk_fts(chunk_fts) VALUES ('delete-all')")
    assert "the keyword index is out of step" in failure(bundle)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE diary(text)",
        "DROP TABLE meta",
        "CREATE TRIGGER spy AFTER DELETE ON chunk BEGIN SELECT 1; END",
    ],
)
def test_another_schema_is_found(make_bundle: MakeBundle, sql: str) -> None:
    assert "has another schema" in failure(tampered(make_bundle(), sql))


def test_counts_that_are_not_the_manifests_are_found(make_bundle: MakeBundle) -> None:
    bundle = tampered(make_bundle(), "UPDATE page SET collection = 'notes' WHERE collection = 'diary'")
    assert "the manifest says" in failure(bundle)


def test_a_heading_that_is_no_json_is_found(make_bundle: MakeBundle) -> None:
    assert "rag.db is damaged" in failure(tampered(make_bundle(), "UPDATE chunk SET heading = 'Pond'"))


@pytest.mark.parametrize("factor", [0.5, 0.0])
def test_a_vector_that_is_not_a_unit_is_found(make_bundle: MakeBundle, factor: float) -> None:
    bundle = make_bundle()
    vector = Bundle.open(bundle).index.vectors[0] * np.float32(factor)
    blob = vector.astype("<f4").tobytes().hex()
    bundle = tampered(bundle, f"UPDATE chunk_vec SET embedding = x'{blob}' WHERE chunk = 1")
    assert "without unit length" in failure(bundle)


def test_a_model_that_embeds_otherwise_than_the_building_machine_is_found(make_bundle: MakeBundle) -> None:
    bundle = make_bundle()
    probe = json.loads((bundle / "manifest.json").read_text())["probe"]
    assert "embeds its probe to a cosine of" in failure(
        resealed(bundle, probe={**probe, "text": "server nginx"})
    )


def test_a_version_that_is_not_the_contents_is_found(make_bundle: MakeBundle) -> None:
    bundle = make_bundle()
    manifest = json.loads((bundle / "manifest.json").read_text())
    (bundle / "manifest.json").write_text(json.dumps({**manifest, "version": "0" * 12}))
    write_sums(bundle)
    assert "its content is not that of version 000000000000" in failure(bundle)


@pytest.mark.parametrize("name", ["rag.db", "model.onnx", "tokenizer.json", "manifest.json", "SHA256SUMS"])
@pytest.mark.parametrize("damage", ["truncated", "flipped", "missing", "empty"])
def test_a_damaged_bundle_is_refused_at_start_in_one_sentence(
    make_bundle: MakeBundle, name: str, damage: str
) -> None:
    path = make_bundle() / name
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "flipped":
        path.write_bytes(
            content[: len(content) // 3]
            + bytes([content[len(content) // 3] ^ 4])
            + content[len(content) // 3 + 1 :]
        )
    else:
        path.write_bytes(b"" if damage == "empty" else content[: len(content) // 2])
    with pytest.raises(BundleError) as error:
        Bundle.open(path.parent)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM chunk WHERE id = 2",
        "DELETE FROM chunk WHERE id = 4",
        "UPDATE chunk SET id = 0 WHERE id = 1",
        "UPDATE chunk SET id = 9 WHERE id = 2",
        "UPDATE chunk SET page = 1, ordinal = 9 WHERE id = 4",
        "UPDATE chunk SET page = 7 WHERE id = 4",
        "DELETE FROM page WHERE id = 2",
        "UPDATE page SET canonical = 70 WHERE id = 2",
        "UPDATE page SET collection = 'notes' WHERE collection = 'diary'",
        "DELETE FROM chunk_vec WHERE chunk = 2",
        "DELETE FROM chunk_vec",
        "UPDATE meta SET value = 'another model'",
        "DELETE FROM meta",
        "INSERT INTO chunk_fts(chunk_fts) VALUES ('delete-all')",
        "INSERT INTO chunk_fts(rowid, title, heading, text) VALUES (99, '', '', 'garden')",
        "DROP TABLE chunk_vec",
        "DROP TABLE page",
    ],
)
def test_a_database_that_would_answer_wrongly_is_refused_at_start_and_by_verify(
    make_bundle: MakeBundle, sql: str
) -> None:
    bundle = tampered(make_bundle(), sql)
    assert "\n" not in failure(bundle)
    with pytest.raises(BundleError) as error:
        Bundle.open(bundle)
    assert "\n" not in str(error.value)


def test_a_bundle_of_an_older_format_is_built_again(make_bundle: MakeBundle) -> None:
    bundle = make_bundle()
    manifest = json.loads((bundle / "manifest.json").read_text())
    (bundle / "manifest.json").write_text(json.dumps({**manifest, "format_version": 1}))
    write_sums(bundle)
    for check in (Bundle.open, lambda bundle: list(verify(bundle))):
        with pytest.raises(BundleError, match=r"bundle format 1 .* build it again"):
            check(bundle)
    assert read_manifest(bundle).format_version == 1  # its figures can be compared all the same


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("probe.text", "server nginx"),
        ("probe.vector", ""),
        ("probe.vector", "AAAA"),
        ("model.fingerprint", "another model"),
        ("model.dim", 384),
        ("model.max_tokens", True),
        ("model.pooling", "max"),
        ("gate.direction", [0.5]),
        ("gate.weights", "abcdefg"),
        ("gate.threshold", "0.5"),
        ("gate.threshold", float("nan")),
        ("gate.max_distance", "near"),
        ("gate.calibrated", None),
        ("collections.notes.public", "no"),
        ("collections.notes.n_chunks", 4),
        ("collections.notes", None),
        ("collections", {}),
        ("collections", []),
        ("sites.notes.n_pages", "3"),
        ("chunker", None),
        ("evaluation", 0.9),
        ("version", 1),
        ("format_version", True),
        ("format_version", 0),
    ],
)
def test_a_manifest_of_other_types_or_parts_is_refused_at_start_and_by_verify(
    make_bundle: MakeBundle, key: str, value: object
) -> None:
    bundle = make_bundle()
    manifest = json.loads((bundle / "manifest.json").read_text())
    *path, name = key.split(".")
    table = manifest
    for each in path:
        table = table[each]
    table[name] = value
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    write_sums(bundle)
    with pytest.raises(BundleError) as error:
        Bundle.open(bundle)
    assert "\n" not in str(error.value)
    failure(bundle)


def test_a_model_with_the_tokenizer_of_another_is_refused_at_start(make_bundle: MakeBundle) -> None:
    bundle = make_bundle()
    tokenizer = json.loads((bundle / "tokenizer.json").read_text())
    words = list(tokenizer["model"]["vocab"])
    tokenizer["model"]["vocab"] = {word: i for i, word in enumerate(words[:5] + words[:4:-1])}
    (bundle / "tokenizer.json").write_text(json.dumps(tokenizer))
    resealed(bundle)
    with pytest.raises(BundleError, match="embeds its probe to a cosine of"):
        Bundle.open(bundle)
    assert "embeds its probe to a cosine of" in failure(bundle)


def test_a_bundle_serves_from_a_folder_that_nobody_may_write(make_bundle: MakeBundle) -> None:
    bundle = make_bundle()
    before = sorted(path.name for path in bundle.iterdir())
    bundle.chmod(0o555)
    try:
        assert Bundle.open(bundle).search("garden").hits
    finally:
        bundle.chmod(0o755)
    assert sorted(path.name for path in bundle.iterdir()) == before


def test_a_search_reaches_only_public_collections_unless_others_are_named(make_bundle: MakeBundle) -> None:
    bundle = Bundle.open(make_bundle())
    assert {
        hit.chunk.collection for hit in bundle.search("secret diary", top_k=50, chunks_per_page=None).hits
    } == {"notes"}
    assert bundle.search("secret diary", collections=["diary"]).hits[0].chunk.collection == "diary"

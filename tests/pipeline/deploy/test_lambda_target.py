from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from handler.bundle.layout import MANIFEST
from pipeline.deploy.lambda_target import DEPLOYED, TEMPLATE, ZIP, deploy, lambda_steps
from pipeline.deploy.lambda_zip import PYTHON, zip_version
from pipeline.deploy.settings import LambdaSettings, read_lambda_settings
from pipeline.deploy.step import DeployError
from pipeline.package import BUNDLE, REQUIREMENTS, package
from pipeline.site import SiteError

MakeBundle = Callable[..., Path]

PAGES = {"notes/a.md": "A\n\nTomatoes want sun."}
# Notes its arguments; its buckets are folders.
AWS = """#!{python}
import json, pathlib, shutil, sys
root = pathlib.Path({root!r})
with (root / "calls").open("a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
def local(name):
    return root / name.removeprefix("s3://") if name.startswith("s3://") else pathlib.Path(name)
match sys.argv[1:]:
    case ["s3", "sync", "--delete", source, target]:
        if local(source).is_dir():
            shutil.copytree(local(source), local(target), dirs_exist_ok=True)
    case ["s3", "cp", source, target]:
        local(target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(local(source), local(target))
    case ["cloudformation", "deploy", *_] if (root / "broken").exists():
        sys.exit("the stack is in ROLLBACK_COMPLETE")
    case ["cloudformation", "describe-stacks", *_]:
        print("https://abc.lambda-url.eu-central-1.on.aws/")
"""


def evaluation(hit_at_6: float) -> Mapping[str, object]:
    return {"modes": {"hybrid": {"hit_at_1": 0.5, "hit_at_6": hit_at_6, "mrr": 0.6}}, "kept": 0.9}


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for AWS's client, and one for the runtime's interpreter: this one, under its name."""
    folder = tmp_path / "cloud"
    folder.mkdir()
    aws = folder / "aws"
    aws.write_text(AWS.format(python=sys.executable, root=str(folder)))
    aws.chmod(0o755)
    if not (folder / f"python{PYTHON}").exists():
        (folder / f"python{PYTHON}").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def packaged(bundle: Path, folder: Path) -> Path:
    package(bundle, folder)
    (folder / REQUIREMENTS).write_text("")
    return folder


def settings(environ: Mapping[str, str] | None = None) -> LambdaSettings:
    return read_lambda_settings({"RALPH_LAMBDA_BUCKET": "bucket", **(environ or {})})


def calls(cloud: Path) -> list[list[str]]:
    path = cloud / "calls"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_package_goes_through_the_bucket_into_the_template(
    cloud: Path, make_bundle: MakeBundle, tmp_path: Path
) -> None:
    folder = packaged(make_bundle(PAGES), tmp_path / "package")
    said: list[str] = []
    deploy(settings(), folder, tmp_path / "lambda", None, said.append, dry_run=False)
    key = f"ralph/{zip_version(folder, 'arm64')}.zip"
    assert (cloud / "bucket" / key).read_bytes() == (tmp_path / "lambda" / ZIP).read_bytes()
    steps = lambda_steps(settings(), folder, tmp_path / "lambda")
    ran = (steps.deployed, steps.upload, steps.apply, steps.record, steps.address)
    assert calls(cloud) == [list(step.argv[1:]) for step in ran]
    assert said[-1] == "https://abc.lambda-url.eu-central-1.on.aws/"
    assert any("unpacked" in line for line in said)


def test_a_dry_run_shows_the_commands_and_runs_none(
    cloud: Path, make_bundle: MakeBundle, tmp_path: Path
) -> None:
    folder = packaged(make_bundle(PAGES), tmp_path / "package")
    said: list[str] = []
    deploy(settings(), folder, tmp_path / "lambda", None, said.append, dry_run=True)
    assert calls(cloud) == []
    assert [line.split()[1:3] for line in said if line.startswith("aws ")] == [
        ["s3", "sync"],
        ["s3", "cp"],
        ["cloudformation", "deploy"],
        ["s3", "cp"],
        ["cloudformation", "describe-stacks"],
    ]


def test_a_worse_bundle_is_refused_unless_it_is_named(
    cloud: Path, make_bundle: MakeBundle, tmp_path: Path
) -> None:
    good = packaged(make_bundle(PAGES, evaluation=evaluation(0.9)), tmp_path / "good")
    deploy(settings(), good, tmp_path / "lambda", None, lambda _: None, dry_run=False)
    bundle = make_bundle(PAGES, evaluation=evaluation(0.5))
    worse = packaged(bundle, tmp_path / "worse")
    n_calls = len(calls(cloud))
    with pytest.raises(DeployError, match="answers worse"):
        deploy(settings(), worse, tmp_path / "lambda", None, lambda _: None, dry_run=False)
    assert len(calls(cloud)) == n_calls + 1
    deploy(settings(), worse, tmp_path / "lambda", bundle.name, lambda _: None, dry_run=False)
    deployed = cloud / "bucket" / "ralph" / DEPLOYED / MANIFEST
    assert deployed.read_bytes() == (bundle / MANIFEST).read_bytes()


def test_a_damaged_bundle_does_not_leave(cloud: Path, make_bundle: MakeBundle, tmp_path: Path) -> None:
    folder = packaged(make_bundle(PAGES), tmp_path / "package")
    with (folder / BUNDLE / "rag.db").open("ab") as file:
        file.write(b"x")
    with pytest.raises(DeployError, match="not deployed"):
        deploy(settings(), folder, tmp_path / "lambda", None, lambda _: None, dry_run=False)
    assert calls(cloud) == []


def test_what_was_not_applied_does_not_count_as_deployed(
    cloud: Path, make_bundle: MakeBundle, tmp_path: Path
) -> None:
    (cloud / "broken").touch()
    folder = packaged(make_bundle(PAGES), tmp_path / "package")
    with pytest.raises(DeployError, match="apply the template: the stack is in ROLLBACK_COMPLETE"):
        deploy(settings(), folder, tmp_path / "lambda", None, lambda _: None, dry_run=False)
    assert not (cloud / "bucket" / "ralph" / DEPLOYED).exists()


def test_the_commands_are_these(make_bundle: MakeBundle, tmp_path: Path) -> None:
    folder = packaged(make_bundle(PAGES), tmp_path / "package")
    environ = {
        "RALPH_AWS": "aws --profile me",
        "RALPH_LAMBDA_STACK": "docs",
        "RALPH_LAMBDA_ARCHITECTURE": "x86_64",
        "RALPH_LAMBDA_PARAMETERS": "'AllowedOrigins=https://a.example https://b.example'",
    }
    steps = lambda_steps(settings(environ), folder, Path("out"))
    key = f"docs/{zip_version(folder, 'x86_64')}.zip"
    aws = ("aws", "--profile", "me")
    assert steps.deployed.argv == (
        *aws,
        "s3",
        "sync",
        "--delete",
        "s3://bucket/docs/deployed",
        "out/deployed",
    )
    assert steps.upload.argv == (*aws, "s3", "cp", "out/ralph.zip", f"s3://bucket/{key}")
    assert steps.apply.argv == (
        *(*aws, "cloudformation", "deploy", "--stack-name", "docs", "--template-file", str(TEMPLATE)),
        *("--capabilities", "CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND", "--no-fail-on-empty-changeset"),
        *("--parameter-overrides", "CodeBucket=bucket", f"CodeKey={key}", "Architecture=x86_64"),
        "AllowedOrigins=https://a.example https://b.example",
    )


def test_another_processor_is_another_zip(make_bundle: MakeBundle, tmp_path: Path) -> None:
    folder = packaged(make_bundle(PAGES), tmp_path / "package")
    assert zip_version(folder, "arm64") == zip_version(folder, "arm64") != zip_version(folder, "x86_64")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RALPH_LAMBDA_BUCKET", ""),
        ("RALPH_LAMBDA_BUCKET", "s3://bucket"),
        ("RALPH_LAMBDA_STACK", "my stack"),
        ("RALPH_LAMBDA_ARCHITECTURE", "i386"),
        ("RALPH_LAMBDA_PARAMETERS", "KeyArn"),
        ("RALPH_LAMBDA_PARAMETERS", "DailyTokens=1 KeyARN=arn"),
        ("RALPH_LAMBDA_PARAMETERS", "Architecture=x86_64"),
        ("RALPH_AWS", "'aws"),
    ],
)
def test_a_wrong_setting_is_named(name: str, value: str) -> None:
    with pytest.raises(SiteError, match=f"^{name}: "):
        settings({name: value})

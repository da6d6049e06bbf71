"""`doit deploy:lambda`: a package becomes a version of a function, through a bucket and a template."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from handler.bundle.layout import MANIFEST
from pipeline.deploy.gate import check_bundle, check_not_worse
from pipeline.deploy.lambda_zip import build_zip, zip_version
from pipeline.deploy.settings import LambdaSettings
from pipeline.deploy.step import Step, run
from pipeline.package import BUNDLE
from pipeline.settings import ROOT

TEMPLATE = ROOT / "infra" / "lambda" / "template.yaml"
ZIP = "ralph.zip"
# Where in the bucket and beside the zip the manifest of what is deployed lies.
DEPLOYED = "deployed"


@dataclass(frozen=True, slots=True)
class LambdaSteps:
    """The steps of a deployment, in their order. `deployed` brings the manifest of what answers now."""

    deployed: Step
    upload: Step
    apply: Step
    record: Step
    address: Step


def lambda_steps(settings: LambdaSettings, package: Path, folder: Path) -> LambdaSteps:
    """What deploying a package runs, to the argument; the zip lies in `folder`."""
    aws, stack = settings.client, settings.stack
    # Another zip has another key, or CloudFormation would see no change.
    key = f"{stack}/{zip_version(package, settings.architecture)}.zip"
    there, here = f"s3://{settings.bucket}/{stack}/{DEPLOYED}", folder / DEPLOYED
    parameters = (
        f"CodeBucket={settings.bucket}",
        f"CodeKey={key}",
        f"Architecture={settings.architecture}",
        *settings.parameters,
    )
    return LambdaSteps(
        # Unlike cp, it is content when nothing was deployed yet.
        deployed=Step("read what is deployed", (*aws, "s3", "sync", "--delete", there, str(here))),
        # Lambda itself takes 50 MB at most, the bucket any size.
        upload=Step("upload", (*aws, "s3", "cp", str(folder / ZIP), f"s3://{settings.bucket}/{key}")),
        apply=Step(
            "apply the template",
            (
                *(*aws, "cloudformation", "deploy", "--stack-name", stack, "--template-file", str(TEMPLATE)),
                *("--capabilities", "CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"),
                *("--no-fail-on-empty-changeset", "--parameter-overrides", *parameters),
            ),
        ),
        record=Step(
            "note what is deployed",
            (*aws, "s3", "cp", str(package / BUNDLE / MANIFEST), f"{there}/{MANIFEST}"),
        ),
        address=Step(
            "ask for the address",
            (
                *(*aws, "cloudformation", "describe-stacks", "--stack-name", stack),
                *("--query", "Stacks[0].Outputs[?OutputKey=='Url'].OutputValue", "--output", "text"),
            ),
        ),
    )


def deploy(
    settings: LambdaSettings,
    package: Path,
    folder: Path,
    accept_worse: str | None,
    say: Callable[[str], None],
    dry_run: bool,
) -> None:
    """Brings a package to AWS Lambda; with `dry_run` it only shows the commands.

    The zip is made in `folder`. `accept_worse` is the version of a bundle that may answer worse than the one
    that is deployed. Raises DeployError, and then the function is the one that it was: CloudFormation goes
    back by itself.
    """
    for line in check_bundle(package / BUNDLE):
        say(line)
    steps = lambda_steps(settings, package, folder)
    if dry_run:
        say(f"# makes {folder / ZIP}, for which the wheels are fetched")
        for step in (steps.deployed, steps.upload, steps.apply, steps.record, steps.address):
            say(str(step))
        return
    deployed = folder / DEPLOYED
    # The client compares sizes and times, and another machine may have deployed since.
    shutil.rmtree(deployed, ignore_errors=True)
    run(steps.deployed)
    if (deployed / MANIFEST).is_file():
        text = (deployed / MANIFEST).read_text(encoding="utf-8")
        check_not_worse(text, package / BUNDLE, accept_worse)
    say(str(build_zip(package, folder / ZIP, settings.architecture)))
    for step in (steps.upload, steps.apply, steps.record):
        say(step.doc)
        run(step)
    say(run(steps.address).strip())

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cfnlint.api import lint
from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

from pipeline.deploy.lambda_target import TEMPLATE
from pipeline.deploy.lambda_wheels import PLATFORMS
from pipeline.deploy.lambda_zip import PYTHON, TASK_ROOT, WRAPPER
from pipeline.deploy.settings import PARAMETERS
from pipeline.package import BUNDLE
from pipeline.settings import ROOT

# cfn-lint calls jsonschema's and networkx' old names; nothing of it ships.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


class NoPolicies:
    """The translator asks for AWS's managed policies by name; the template names none."""

    def load(self) -> Mapping[str, str]:
        return {}


@pytest.fixture(autouse=True)
def _region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")


def translated(source: str) -> dict[str, Any]:
    """The CloudFormation that a SAM template stands for."""
    return dict(transform(yaml_parse(source), {}, NoPolicies()))


def complaints(source: str) -> list[str]:
    """What cfn-lint says of it. Of a SAM template itself it would let a wrong InvokeMode pass."""
    return findings(json.dumps(translated(source), indent=1))


def findings(source: str) -> list[str]:
    """What cfn-lint says by default: errors and warnings."""
    return [str(match.message) for match in lint(source)]


def resources(kind: str) -> list[dict[str, Any]]:
    found = translated(TEMPLATE.read_text())["Resources"].values()
    return [resource["Properties"] for resource in found if resource["Type"] == kind]


def test_the_template_is_without_fault() -> None:
    assert complaints(TEMPLATE.read_text()) == []
    assert findings(TEMPLATE.read_text()) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("InvokeMode: RESPONSE_STREAM", "InvokeMode: RESPONSE_STREAMS"),
        ("Runtime: python3.13", "Runtime: python3.31"),
        ("ApplyOn: PublishedVersions", "ApplyOn: Published"),
    ],
)
def test_a_wrong_word_is_caught(right: str, wrong: str) -> None:
    source = TEMPLATE.read_text()
    assert source.count(right) == 1
    assert any(wrong.split(": ")[1] in each for each in complaints(source.replace(right, wrong)))


def test_the_url_streams_from_the_snapshot_of_a_version() -> None:
    (url,) = resources("AWS::Lambda::Url")
    assert url["InvokeMode"] == "RESPONSE_STREAM"
    assert url["TargetFunctionArn"] == {"Ref": "FunctionAliaslive"}
    (function,) = resources("AWS::Lambda::Function")
    assert function["SnapStart"] == {"ApplyOn": "PublishedVersions"}
    assert function["ReservedConcurrentExecutions"] == {"Ref": "ReservedConcurrency"}


def test_the_url_may_be_asked_by_everybody_in_both_ways_that_are_checked() -> None:
    actions = {permission["Action"] for permission in resources("AWS::Lambda::Permission")}
    assert actions == {"lambda:InvokeFunctionUrl", "lambda:InvokeFunction"}


def test_the_key_is_named_and_nothing_else_may_be_read() -> None:
    (function,) = resources("AWS::Lambda::Function")
    environ = function["Environment"]["Variables"]
    assert environ["ANTHROPIC_API_KEY_ARN"] == {"Ref": "KeyArn"}
    assert "ANTHROPIC_API_KEY" not in environ
    (role,) = resources("AWS::IAM::Role")
    ((_, policy, _),) = (policy["Fn::If"] for policy in role["Policies"])
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert statement["Action"] == "secretsmanager:GetSecretValue"
    assert statement["Resource"] == {"Ref": "KeyArn"}


def test_logs_are_kept_for_a_while() -> None:
    (group,) = resources("AWS::Logs::LogGroup")
    assert group["RetentionInDays"] == {"Ref": "LogRetentionDays"}
    (function,) = resources("AWS::Lambda::Function")
    assert function["LoggingConfig"] == {"LogGroup": {"Ref": "LogGroup"}}


def test_the_template_and_the_zip_agree() -> None:
    template = yaml_parse(TEMPLATE.read_text())
    assert template["Parameters"]["Architecture"]["AllowedValues"] == sorted(PLATFORMS)
    assert set(template["Parameters"]) == {"CodeBucket", "CodeKey", "Architecture", *PARAMETERS}
    (function,) = resources("AWS::Lambda::Function")
    assert function["Runtime"] == f"python{PYTHON}"
    environ = function["Environment"]["Variables"]
    assert environ["AWS_LAMBDA_EXEC_WRAPPER"] == f"{TASK_ROOT}/{WRAPPER.name}"
    assert environ["RALPH_BUNDLE"] == f"{TASK_ROOT}/{BUNDLE}"
    module = function["Handler"].rpartition(".")[0]
    assert Path(ROOT, *module.split(".")).with_suffix(".py").is_file()

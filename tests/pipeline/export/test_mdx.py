"""MDX becomes markdown without losing a word that a reader sees."""

from __future__ import annotations

import pytest

from pipeline.export.mdx import strip_mdx


@pytest.mark.parametrize(
    "statement",
    [
        "import Tabs from '@theme/Tabs';\n",
        "import 'styles.css'\n",
        'import React, { useState } from "react";\n',
        "import * as all from './all'\n",
        "import {\n  a,\n  b,\n} from './ab';\n",
        "export const toc = [\n  {a: 1},\n\n  {b: '}'},\n];\n",
        "export default function Page() {\n  return <p>`x`</p>;\n}\n",
    ],
)
def test_imports_and_exports_go(statement: str) -> None:
    assert strip_mdx(f"{statement}\nText.\n").strip() == "Text."
    assert strip_mdx(f"# Title\n\n{statement}\nText.\n").split() == ["#", "Title", "Text."]


@pytest.mark.parametrize(
    "text",
    [
        "import the data, then look at it\n",
        "export VARNAME=value  -defines a variable\n",
        "exporting 'x' from here\n",
        "```js\nimport a from 'b';\n```\n",
        "A `<Tabs>` tag, and 1 < 2 <3\n",
        "```jsx\n<Tabs />\n```\n",
        '<div class="x">raw HTML stays</div>\n',
        "<VirtualHost *:443> is no component\n",
        "<https://example.org>\n",
    ],
)
def test_prose_and_code_stay(text: str) -> None:
    assert strip_mdx(text) == text


def test_components_go_and_their_children_stay() -> None:
    text = '<Tabs>\n<TabItem value="mac" label="macOS" default>\n\nUse **brew**.\n\n</TabItem>\n</Tabs>\n'
    assert strip_mdx(text).split() == ["macOS", "Use", "**brew**."]


def test_attributes_that_a_reader_sees_stay() -> None:
    text = "<Card title={'A title'} alt='A cat'>Text</Card> <>and</> <A.B /><Link to={`/x`}>so</Link>"
    assert strip_mdx(text).split() == ["A", "title", "A", "catText", "and", "so"]


def test_attributes_with_code_are_skipped_whole() -> None:
    text = '<Piano\n  range={{ first: 48 }}\n  play={(n) => {\n    log("}" + `>${n}`);\n  }}\n/>\n\nText'
    assert strip_mdx(text).strip() == "Text"


def test_comments_and_head_metadata_go() -> None:
    assert strip_mdx(
        "a {\n/* hidden */\n}{/* hidden\n */}b\n\n<head>\n<meta content='x' />\n</head>\n"
    ).split() == ["a", "b"]


def test_fences_inside_components_are_untouched() -> None:
    assert "import x from 'y'\n<Tag />" in strip_mdx(
        "<Tabs>\n\n```js\nimport x from 'y'\n<Tag />\n```\n\n</Tabs>"
    )


@pytest.mark.parametrize(
    "unit", ["{/* a ", "{/* a */ b} ", "<A b={", "<A b={()", "<head>", "export const a = {\n\n"]
)
def test_what_is_opened_thousands_of_times_and_never_closed_stays_and_takes_linear_time(unit: str) -> None:
    text = unit * 20_000
    assert strip_mdx(text) == text


def test_a_comment_that_gives_a_heading_its_id_becomes_that_id() -> None:
    assert strip_mdx("## Install {/* #setup */}\n\nText {/* #todo */}\n") == "## Install {#setup}\n\nText \n"

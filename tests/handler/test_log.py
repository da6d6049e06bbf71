from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """
import logging
from handler.log import open_log
log = open_log()
log.info("request", extra={"status": 200, "path": "/a\\nb"})
logging.getLogger("uvicorn.error").info("Started")
logging.getLogger("any.library").warning("careful")
try:
    1 / 0
except ZeroDivisionError:
    logging.getLogger("handler.sse").exception("broke")
"""


def test_whatever_is_logged_is_one_line_of_json_once() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["message"] for line in lines] == ["request", "careful", "broke"]
    assert (lines[0]["status"], lines[0]["path"]) == (200, "/a\nb")
    assert "ZeroDivisionError" in lines[2]["exception"]
    assert done.stdout == ""

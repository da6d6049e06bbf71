"""ONNX Runtime, told to keep to itself: whoever needs it has it from here.

Otherwise its wheels (1.32; see Privacy.md in them) write an identifier of the machine and a database into
the home folder when they are loaded, and report to their makers. The variable is read once, at the import;
disable_telemetry_events() comes too late for the database.
"""

from __future__ import annotations

import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime as ort

__all__ = ["ort"]

"""A bundle: its format, and how it is opened and searched. No web, no language model."""

import os

# ONNX Runtime keeps a database about its use in the home folder, and sends it to its makers, unless it finds
# this when it is imported; its disable_telemetry_events() comes too late for the database.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

"""The app behind API Gateway, as `handler.lambda_mangum.handler` on Lambda's own Python runtime.

API Gateway buffers, and so does Mangum: a reader sees nothing of an answer before its end. `lambda_stream`,
behind a Function URL, shows it as it is written.
"""

from __future__ import annotations

import os

from mangum import Mangum

from handler.lambda_app import open_function

# Lambda imports this module once for all requests; "auto" would start and stop the app with each of them.
_function = open_function(os.environ)
_function.begin()
handler = Mangum(_function.app, lifespan="off")

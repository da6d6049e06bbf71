#!/bin/sh
# AWS_LAMBDA_EXEC_WRAPPER names this file. Lambda calls it with its interpreter and its own runtime client;
# the interpreter is kept, and the client that streams takes the other's place.
cd "$LAMBDA_TASK_ROOT" || exit 1
# boto3, which reads the secret, is the runtime's; what the zip has comes first.
export PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}$LAMBDA_RUNTIME_DIR"
exec "$1" -m handler.lambda_stream

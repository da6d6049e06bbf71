#!/bin/sh
# AWS_LAMBDA_EXEC_WRAPPER names this file. Lambda calls it with its interpreter and its own runtime client;
# the interpreter is kept, and the client that streams takes the other's place.
cd "$LAMBDA_TASK_ROOT" || exit 1
exec "$1" -m handler.lambda_stream

"""How doit speaks in a build: what ran, what failed, and nothing about what was up to date."""

from __future__ import annotations

from typing import Any

from doit.reporter import ConsoleReporter


class BuildReporter(ConsoleReporter):  # type: ignore[misc] # doit is untyped
    """One line a task that runs; a failure in its own words, without a traceback where the words suffice."""

    desc = "one line for each task that runs"

    def __init__(self, outstream: Any, options: dict[str, Any]) -> None:
        super().__init__(outstream, options)
        self._n_executed = 0

    def execute_task(self, task: Any) -> None:
        """Says that a task starts."""
        if task.actions and not task.name.startswith("_"):
            self._n_executed += 1
            self.write(f"{task.title()}\n")
            self.outstream.flush()

    def skip_uptodate(self, task: Any) -> None:
        """Says nothing."""

    def complete_run(self) -> None:
        """Says that there was nothing to do, or repeats the errors of doit itself."""
        for error in self.runtime_errors:
            self.write(f"{error}\n")
        if not self._n_executed and not self.failures and not self.runtime_errors:
            self.write("up to date\n")

    def _write_failure(self, result: dict[str, Any], write_exception: bool = True) -> None:  # noqa: ARG002 - doit's signature
        self.write(f"{result['task'].name}: {result['exception'].get_msg().rstrip()}\n")

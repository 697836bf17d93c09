"""Usage errors: one line with what is wrong and where the help is, as every other error a user can mend."""

import contextlib
import re
from collections.abc import Iterator
from typing import IO, Any

import click

_NUMBER = re.compile(r"is not a valid (integer|float)( range)?")


class OneLine(click.UsageError):
    """A usage error that shows itself as one line; exit code 2, as any usage error. `path`: whose help to read."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path = path

    def show(self, file: IO[Any] | None = None) -> None:
        """Write the line on stderr."""
        told = _NUMBER.sub(
            lambda found: f"is no {'whole ' if found[1] == 'integer' else ''}number", self.format_message()
        )
        line = "".join(c if c.isprintable() else " " for c in told)
        click.echo(
            f"hwlottery: {' '.join(line.split()).rstrip('.')}; see {self.path} --help", file=file, err=file is None
        )


class Commands(click.Group):
    """The commands, whose usage errors are one line each."""

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        """As any group's, with the errors of its own options told in one line."""
        with _one_line():
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        """As any group's, with the errors of each command's arguments told in one line."""
        with _one_line(ctx):
            return super().invoke(ctx)


@contextlib.contextmanager
def _one_line(ctx: click.Context | None = None) -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # a group without a command: its message is its help
            raise
        # The parser of options raises without a context: then the command is known to the group alone.
        within = f"{ctx.command_path} {ctx.invoked_subcommand or ''}".strip() if ctx else "hwlottery"
        raise OneLine(error.format_message(), error.ctx.command_path if error.ctx else within) from error

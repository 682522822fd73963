"""``cordwood``: finds the command, runs it, and turns anything that goes wrong into one sentence and an exit status.

A command is a module of this package with ``configure(parser)`` and ``run(arguments) -> status``. Only the module of
the command that was asked for is imported: a broker starts without loading a Kafka client.
"""

import argparse
import errno
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

import cordwood
from cordwood.errors import CordwoodError

COMMANDS = {
    "serve": "run a broker",
    "cluster": "run several brokers on this machine, or show the state of a cluster",
    "zookeeper": "run the ZooKeeper that a cluster shares",
    "topics": "create, list, describe, move and delete topics",
    "groups": "list, describe, reset and delete consumer groups",
    "produce": "send lines of standard input to a topic",
    "consume": "print a topic's records",
    "pipeline": "write, run, watch and inspect a pipeline on Spark",
    "demo": "see it work: a broker, a group of two consumers, and a pipeline on Spark",
}

# Their values may begin with a minus.
SIGNED_OPTIONS = ("--from", "--to", "--shift")

# The errors of writing to a file when there is no more room. Brokers have a message of their own for their disks.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

FAILED = 1
INTERRUPTED = 128 + signal.SIGINT
PIPE_CLOSED = 128 + signal.SIGPIPE


class _Parser(argparse.ArgumentParser):
    """Every command and action has its own parser: the one that meets an unexpected argument shows its usage."""

    def parse_known_args(  # type: ignore[override]  # we give it no namespace of another kind
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        parsed, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return parsed, left


class _Version(argparse.Action):
    """Prints the version and ends."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"cordwood {cordwood.__version__}")
        parser.exit()


def parser_for(command: str | None) -> argparse.ArgumentParser:
    """The parser, with the details of one command."""
    parser = _Parser(
        prog="cordwood",
        description="Stacked logs, ready for Spark: a commit log that speaks Apache Kafka's protocol.",
        epilog="`cordwood COMMAND -h` says more about a command.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, purpose in COMMANDS.items():
        subparser = commands.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
        if name == command:
            module = import_module(f"cordwood.cli.{name}")
            module.configure(subparser)
            subparser.set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    _have_outputs()
    words = _joined(sys.argv[1:] if arguments is None else arguments)
    try:
        try:
            return _status(words)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone
        _drop_output()
        return PIPE_CLOSED
    except PermissionError as error:
        if error.filename is None:
            raise
        print(f"cordwood: {error.filename} cannot be used: {error.strerror}", file=sys.stderr)
        return FAILED
    except OSError as error:
        if error.errno not in FULL:
            raise
        _drop_output()
        print(f"cordwood: the output could not be written: {error.strerror}", file=sys.stderr)
        return FAILED


def _status(words: Sequence[str]) -> int:
    """Run the command given by these words."""
    command = next((word for word in words if not word.startswith("-")), None)
    parsed = parser_for(command).parse_args(words)
    run: Callable[[argparse.Namespace], int] = parsed.run
    try:
        return run(parsed)
    except CordwoodError as error:
        print(f"cordwood: {error}", file=sys.stderr)
        return FAILED


def _drop_output() -> None:
    """Otherwise Python would complain once more when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _have_outputs() -> None:
    """If the caller has closed an output, it wants to see nothing: open a substitute that works like any other."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  open until the end
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def _joined(words: Sequence[str]) -> list[str]:
    """Let ``--from -1h`` mean ``--from=-1h``, because argparse would take ``-1h`` for an option."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] in SIGNED_OPTIONS and re.match(r"-\d", word):
            joined[-1] = f"{joined[-1]}={word}"
        else:
            joined.append(word)
    return joined


if __name__ == "__main__":
    sys.exit(main())

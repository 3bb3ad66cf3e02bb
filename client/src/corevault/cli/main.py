"""The entry point of ``corevault``."""

import io
import os
import sys
import warnings
from collections.abc import Sequence

from corevault.cli.parsing import make_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. An error becomes one sentence, never a traceback."""
    _make_printable()
    options = make_parser().parse_args(arguments)
    from corevault.cli import commands, failures  # noqa: PLC0415 - help needs no client
    from corevault.cli.output import Output, say  # noqa: PLC0415
    from corevault.errors import CorevaultError  # noqa: PLC0415

    output = Output(as_json=options.json, quiet=options.quiet)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: say(f"corevault: {message}")
            warnings.simplefilter("always", UserWarning)
            code = commands.COMMANDS[options.command](options, output)
            sys.stdout.flush()  # so that a closed pipe is found here
            return code
    except CorevaultError as error:
        say(failures.describe_error(error, options))
        return failures.find_exit_code(error)
    except KeyboardInterrupt:
        say("corevault: Interrupted; a submitted job continues on the server. [interrupted]")
        return failures.INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return failures.OK
    except Exception as error:  # noqa: BLE001 - a fault of this program; users cannot read tracebacks
        say(f"corevault: A fault of this program ({type(error).__name__}); please report it. [internal]")
        return failures.SERVER


def _make_printable() -> None:
    """Let the streams write any text: characters that their encoding does not have become escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())

"""The arguments of the command line."""

import argparse
import difflib
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from types import MappingProxyType
from typing import Any, Final, NoReturn

DESCRIPTION: Final = """Buy and use differentially private pseudocoresets.

The server and the key come from COREVAULT_URL and COREVAULT_API_KEY, or from `corevault login`.
A dataset may be given by id or by name."""
EPILOG: Final = """exit codes:
  0  success
  1  the answer is no: a check, a verification, a job or a file failed, or the
     state of the dataset or job does not allow it
  2  wrong usage; nothing was changed
  3  refused by the budget; no balance has changed
  4  not found, or the key has no access
  5  an error of the server or the network; a submitted job continues
  6  the release was bought, but not saved; `corevault download` saves it"""
FAMILIES: Final = (
    "logistic-regression",
    "probit-regression",
    "linear-regression",
    "student-t-regression",
    "poisson-regression",
    "negative-binomial-regression",
    "multinomial-logistic",
    "gaussian-mean",
)


Add = Callable[[str, str], argparse.ArgumentParser]
"""A function that adds a command with its name and its summary."""
_MESSAGES: Final = (
    (r"the following arguments are required: (.*)", r"{prog} also needs \1"),
    (r"argument (\S+): expected (?:at least )?one argument", r"\1 needs a value"),
    (r"argument (\S+): not allowed with argument (\S+)", r"\1 and \2 exclude each other"),
    (r"argument (\S+): (.*)", r"\1: \2"),
    (r"unrecognized arguments: (.*)", r"{prog} does not take this: \1"),
    (r"one of the arguments (.*) is required", r"{prog} needs one of these options: \1"),
)
"""Messages of argparse, and the sentences that replace them."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence with a code."""

    @property
    def options(self) -> Sequence[argparse.Action]:
        """The options, without positional arguments."""
        return [action for action in self._actions if action.option_strings]

    @property
    def choices(self) -> Sequence[str]:
        """The values that the positional arguments can have, if they are few."""
        return [word for action in self._actions if not action.option_strings for word in action.choices or ()]

    def error(self, message: str) -> NoReturn:
        """Prints the sentence and ends with exit code 2."""
        for pattern, sentence in _MESSAGES:
            if found := re.fullmatch(pattern, message, re.DOTALL):
                message = found.expand(sentence.replace("{prog}", self.prog))
                break
        self.exit(2, f"corevault: {message}; see {self.prog} --help. [usage]\n")


class _Commands(Parser):
    """The parser of all commands."""

    commands: Mapping[str, Parser] = MappingProxyType({})

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """The parsed arguments. Without a command it prints the help and ends with exit code 2."""
        given = list(sys.argv[1:] if args is None else args)
        if not given:
            self.exit(2, self.format_help())
        command = given[0]
        if command.startswith("-") and not any(command in each.option_strings for each in self.options):
            self.error(f"write {command.partition('=')[0]} after the command, as in corevault datasets --url URL")
        if command not in self.commands and not command.startswith("-"):
            near = difflib.get_close_matches(command, self.commands, n=1)
            self.error(f"there is no command {command!r}{f'; did you mean {near[0]}?' if near else ''}")
        options, rest = self.parse_known_args(given, namespace)
        if rest:
            hint = _suggest(rest, self.commands[options.command])
            Parser(f"corevault {options.command}").error(f"unrecognized arguments: {' '.join(rest)}{hint}")
        return options


def _suggest(rest: Sequence[str], command: Parser) -> str:
    """A clause about arguments that the command does not take; empty without a guess."""
    names = [name for option in command.options for name in option.option_strings]
    if wrong := next((each.partition("=")[0] for each in rest if each.startswith("-")), None):
        near = difflib.get_close_matches(wrong, names, n=1)
        return f"; did you mean {near[0]}?" if near else ""
    return "; write names of columns with commas, as in A,B" if "--features" in names else ""


def make_parser() -> argparse.ArgumentParser:
    """The parser; ``command`` of the result is the name of a command."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = _Commands("corevault", description=DESCRIPTION, epilog=EPILOG, formatter_class=raw)
    parser.add_argument("--version", action="version", version=f"corevault {version('corevault')}")
    common = Parser(add_help=False)
    common.add_argument("--url", help="address of the server")
    form = common.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("-q", "--quiet", action="store_true", help="print ids only")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)

    def add(name: str, summary: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=summary, description=summary, parents=[common])

    _add_tables(add)
    _add_jobs(add)
    _add_releases(add)
    _add_accounts(add)
    _add_audit_log(add("audit-log", "Show the audit log, newest entries first (admin, auditor)."))
    shell = add("completion", "Print the script that completes commands and options in a shell.")
    shell.add_argument("shell", choices=("bash", "zsh", "fish"))
    shell.set_defaults(commands=commands.choices)
    parser.commands = commands.choices
    return parser


def _add_tables(add: Add) -> None:
    login = add("login", "Store the server's address and an API key for this user.")
    login.add_argument("address", nargs="?", metavar="URL", help="address of the server; without it, login asks")
    login.add_argument("--key-file", metavar="PATH", help="read the key from a file, - for standard input")
    login.add_argument("--public", action="store_true", help="store no key; public releases need none")
    _add_limit(add("datasets", "List the datasets that the key may see."))
    check = add("check", "Check a table on this machine; sends nothing about its rows.")
    check.usage = "%(prog)s [options] DATASET TABLE\n       %(prog)s [options] --schema PATH TABLE"
    given = "the dataset whose declaration applies, and the table: CSV, Parquet or Arrow stream"
    check.add_argument("given", nargs="+", metavar="DATASET TABLE", help=given)
    declared = check.add_mutually_exclusive_group()
    declared.add_argument("--dataset", help="another way to name the dataset")
    declared.add_argument("--schema", metavar="PATH", help="the declared columns as JSON, instead of a dataset")
    _add_share(check)
    upload = add("upload", "Check a table, and send it to a dataset.")
    upload.add_argument("dataset", metavar="DATASET")
    upload.add_argument("table", metavar="TABLE", help="CSV, Parquet or Arrow stream")
    upload.add_argument("--no-wait", action="store_true", help="do not wait until the server has read it")
    _add_share(upload)


def _add_jobs(add: Add) -> None:
    quote = add("quote", "Show the price of a job; reads no row and changes nothing.")
    _add_job(quote)
    quote.add_argument("--epsilon", type=_number, nargs="+", action="extend", default=[], help="one or several targets")
    quote.add_argument("--accuracy", action="store_true", help="estimate how much noise widens intervals")
    run = add("run", "Buy a release: submit a job, and wait for it.")
    _add_job(run)
    run.add_argument("--epsilon", type=_number, help="target of the job")
    run.add_argument("--key", metavar="TEXT", help="idempotency key: a repeated call gets the same job")
    run.add_argument("--no-wait", action="store_true", help="print the job and return")
    run.add_argument("-o", "--output", metavar="PATH", help="save the points, as download does")
    add("watch", "Wait for a job.").add_argument("job")


def _add_releases(add: Add) -> None:
    releases = add("releases", "List releases.")
    releases.add_argument("--dataset", help="list the releases of one dataset")
    _add_limit(releases)
    download = add("download", "Save the verified points of a release.")
    download.add_argument("release")
    download.add_argument("-o", "--output", metavar="PATH", help="a .csv, .parquet, .json or .npz file")
    _add_pins(download)
    verify = add("verify", "Verify signature, statement and digests of a release.")
    verify.add_argument("release")
    _add_pins(verify)
    audit = add("verify-audit", "Verify the signed statement of a privacy audit, and its bounds.")
    audit.add_argument("file", metavar="FILE", help="the JSON file that corevaultd audit --statement wrote")
    _add_pins(audit)


def _add_accounts(add: Add) -> None:
    add("budget", "Show the limit, and the spent, reserved and remaining cost.").add_argument("dataset")
    asked = add("what-if", "Show the consequence of a job, a limit or an allocation; changes nothing.")
    asked.add_argument("dataset")
    change = asked.add_mutually_exclusive_group(required=True)
    change.add_argument("--job", type=_number, metavar="EPSILON", help="a job that costs this alone")
    change.add_argument("--limit", type=_number, metavar="EPSILON", help="another limit of the account")
    change.add_argument(
        "--allocation", type=_allocation, metavar="KEY=EPSILON", help="the most that one key's jobs may cost together"
    )
    change.add_argument("--end-allocation", metavar="KEY", help="no allocation for this key any more")
    asked.add_argument("--delta", type=_number, help="with a --limit above the highest so far: the delta that it adds")
    ledger = add("verify-ledger", "Verify the hashes and signatures of a dataset's ledger on this machine.")
    ledger.add_argument("dataset")
    _add_pins(ledger)
    ledger.add_argument(
        "--entry", action="append", default=[], metavar="HASH", help="an entry, noted earlier, that must be in it"
    )


def _add_audit_log(log: argparse.ArgumentParser) -> None:
    log.add_argument("--actor", metavar="KEY", help="calls of this key")
    log.add_argument("--action", metavar="TEXT", help="method and path, such as 'POST /v1/jobs'")
    log.add_argument("--target", metavar="ID", help="calls about this dataset, job or key")
    log.add_argument("--outcome", choices=("succeeded", "refused", "failed"))
    log.add_argument("--since", type=_moment, metavar="TIME", help="the first time, such as 2029-01-31 (in UTC)")
    log.add_argument("--until", type=_moment, metavar="TIME", help="the time after the last one")
    _add_limit(log)


def _add_limit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=_count, default=50, help="most entries to show (50)")


def _add_share(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-null-share", type=_share, metavar="SHARE", default=0.01, help="largest share of null rows (0.01)"
    )


def _add_pins(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pin", action="append", metavar="KEY", help="a trusted public key in base64")


def _add_job(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dataset")
    parser.add_argument("--model", metavar="PATH", help="the model as JSON, instead of the options below")
    parser.add_argument("--family", type=_family, default="logistic-regression", help=f"one of {', '.join(FAMILIES)}")
    parser.add_argument("--features", type=_split, metavar="A,B,…", help="names of columns")
    parser.add_argument("--target", help="name of the target's column")
    parser.add_argument("--formula", metavar="TEXT", help="features and target in one, as in 'sick ~ age * sex'")
    parser.add_argument("--prior-scale", type=_number, default=1.0)
    parser.add_argument("--noise-scale", type=_number, help="known noise, in the target's units")
    parser.add_argument("--size", type=_count, help="number of pseudopoints; by default the least exact number")
    parser.add_argument("--method", help="the server's default is usual")


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"write a number with a point, such as 0.5, not {text!r}") from None
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"write a finite number, such as 0.5, not {text!r}")
    return number


def _moment(text: str) -> datetime:
    """A time; without a zone in UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"write a time such as 2029-01-31 or 2029-01-31T12:00Z, not {text!r}"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _allocation(text: str) -> tuple[str, float]:
    key, _, epsilon = text.partition("=")
    if not key or not epsilon:
        raise argparse.ArgumentTypeError(f"write the id of a key and a number, as in key_01jd=0.5, not {text!r}")
    return key, _number(epsilon)


def _share(text: str) -> float:
    share = _number(text)
    if not 0.0 <= share <= 1.0:
        raise argparse.ArgumentTypeError(f"write a number between 0 and 1, not {text!r}")
    return share


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"write a whole number of at least 1, not {text!r}")
    return int(text)


def _family(text: str) -> str:
    if text in FAMILIES:
        return text
    near = [each for each in FAMILIES if text and each.startswith(text)] or difflib.get_close_matches(text, FAMILIES)
    hint = f"did you mean {near[0]}?" if near else f"the families are {', '.join(FAMILIES)}"
    raise argparse.ArgumentTypeError(f"there is no family {text!r}; {hint}")


def _split(text: str) -> Sequence[str]:
    return [name.strip() for name in text.split(",") if name.strip()]

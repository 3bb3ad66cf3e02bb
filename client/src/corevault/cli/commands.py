"""The commands. Each takes the parsed arguments and an output, and returns an exit code."""

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any, Final

from corevault._show import Table
from corevault.cli.completion import write_script
from corevault.cli.failures import NO, NOT_SAVED, OK, describe_error
from corevault.cli.inputs import (
    check_output,
    read_check,
    read_json,
    read_key,
    read_schema,
    require_dataset_first,
    require_id,
)
from corevault.cli.output import Output, say
from corevault.client import Client
from corevault.connection import URL, Credentials, connect, find_credentials, find_file, write_file
from corevault.errors import CorevaultError, InvalidArgument, JobFailed
from corevault.replies.job import Job

_OWN_KEY: Final = "The key comes from the server itself; pass --pin with a key that you trust."


def login(options: Namespace, output: Output) -> int:
    """Checks address and key with the server, and stores them."""
    url = options.address or options.url or _ask("Address of the server: ")
    key = None if options.public else read_key(options.key_file)
    with Client(url, key) as client:
        me = None if key is None else client.me()
        if key is None:
            client.signing_keys()  # raises if no server answers at this address
    path = find_file()
    write_file(Credentials(url.strip(), None if key is None else key.strip()), path)
    if me is not None:
        output.show(me)
    say(f"Stored in {path}.")
    return OK


def list_datasets(options: Namespace, output: Output) -> int:
    """Lists datasets."""
    with connect(options.url) as client:
        output.show_list(client.datasets.list(), options.limit)
    return OK


def check(options: Namespace, output: Output) -> int:
    """Checks a table. The exit code is 1 if an upload would be refused."""
    dataset, table = read_check(options)
    if dataset is not None:
        require_dataset_first(dataset, table)
        with connect(options.url) as client:
            declared = client.datasets.get(dataset)
        schema, unit, slots = declared.schema, declared.privacy_unit, declared.most_rows
    else:
        (schema, unit), slots = read_schema(options.schema), None
    found = schema.check(table, privacy_unit=unit)
    rows = [{"column": name, "missing": each.missing, "clamped": each.clamped} for name, each in found.columns.items()]
    if output.as_json:
        counts = {"rows": found.rows, "null_rows": found.null_rows, "absent": found.absent, "unknown": found.unknown}
        counts["advice"] = found.advice
        output.show_facts(counts | {"columns": rows}, name="null_rows")
    elif rows:
        output.show_rows(rows, name="column")
    say(found.describe_columns() or f"{found.null_rows} of {found.rows} rows would be null.")
    for advice in found.advice:
        say(advice)
    if not found.rows and found.columns:
        say("The table has no rows below its header, so an upload would be refused.")
    if is_long := slots is not None and found.rows > slots:
        say(f"The table has more rows than the {slots} slots of the dataset.")
    fits = found.rows > 0 and not found.absent and not found.unknown and found.null_share <= options.max_null_share
    return OK if fits and not is_long else NO


def upload(options: Namespace, output: Output) -> int:
    """Uploads a table."""
    require_dataset_first(options.dataset, options.table)
    with connect(options.url) as client:
        dataset = client.datasets.get(options.dataset)
        shown = output.shows_progress
        client.datasets.upload(dataset, options.table, max_null_share=options.max_null_share, progress=shown)
        output.show(client.datasets.get(dataset) if options.no_wait else client.datasets.wait_until_ready(dataset))
    return OK


def quote(options: Namespace, output: Output) -> int:
    """Shows prices."""
    with connect(options.url) as client:
        asked = {"epsilons": options.epsilon, "expected_accuracy": options.accuracy} | _job_options(options)
        rows = client.quote_rows(options.dataset, _Model(options), **asked)
    output.show_rows(rows, name="epsilon")
    return OK


def run(options: Namespace, output: Output) -> int:
    """Submits a job, waits for it, and saves the points. From the submission on, every error names the job."""
    check_output(options.output)
    if options.no_wait and options.output is not None:
        raise InvalidArgument("--no-wait and --output exclude each other; corevault download saves the points later.")
    with connect(options.url) as client:
        given = {"epsilon": options.epsilon, "idempotency_key": options.key} | _job_options(options)
        job = client.jobs.submit(options.dataset, _Model(options), **given)
        if not options.no_wait:
            say(f"Submitted {job.id}.")
            job = _wait(client, job, output)
        code = _save(client, job, options)
    output.show(job, name="id" if job.release_id is None else "release_id")
    return code


def watch(options: Namespace, output: Output) -> int:
    """Waits for a job."""
    require_id(options.job, "job")
    with connect(options.url) as client:
        output.show(client.jobs.wait(options.job, progress=output.shows_progress), name="release_id")
    return OK


def list_releases(options: Namespace, output: Output) -> int:
    """Lists releases."""
    with connect(options.url) as client:
        output.show_list(client.releases.list(dataset_id=options.dataset), options.limit)
    return OK


def download(options: Namespace, output: Output) -> int:
    """Saves the verified points."""
    require_id(options.release, "release")
    path = options.output or f"{options.release}.csv"
    check_output(path)
    with connect(options.url) as client:
        release = client.releases.save(options.release, path, pinned_keys=options.pin)
    output.show(release)
    say(f"Saved in {path}.")
    return OK


def verify(options: Namespace, output: Output) -> int:
    """Verifies a release."""
    require_id(options.release, "release")
    with connect(options.url) as client:
        release = client.releases.get(options.release)
        statement = client.releases.verify(release, pinned_keys=options.pin)
    if output.as_json:
        output.show_facts(dict(statement), name="release_id")
    else:
        output.show(release)
    say("Verified: the signature, the statement and the digests of all representations.")
    if options.pin is None:
        say(_OWN_KEY)
    return OK


def verify_audit(options: Namespace, output: Output) -> int:
    """Verifies a signed privacy audit. The exit code is 1 if an attack exceeded the guarantee."""
    from corevault.audit_statement import verify_audit as check_audit  # noqa: PLC0415 - a command's own import

    document = read_json(options.file, dict)
    pins = options.pin
    if pins is None:
        if not (options.url or os.environ.get(URL) or find_file().exists()):
            raise InvalidArgument(
                "The audit can only be verified with the key that signed it: pass the operator's public key as --pin, "
                "or the address of a server whose published keys you trust as --url."
            )
        with connect(options.url) as client:
            pins = list(client.signing_keys())
    found = check_audit(document, pins)
    code = found.statement["code"]
    facts = {"version": code["version"], "commit": code["commit"], "sections": list(found.statement["records"])}
    facts |= {"size": found.statement["plan"]["size"], "checked": found.checked}
    output.show_facts(facts | {"failures": found.failures, "altered": list(found.altered)}, name="version")
    if found.checked:
        say(f"Verified: the signature, and {found.checked} bounds, which were computed again from the counts.")
    else:
        say("Verified: the signature. The sections of this audit have no counts from which a bound follows.")
    if options.pin is None:
        say(_OWN_KEY)
    return OK if found.holds else NO


def budget(options: Namespace, output: Output) -> int:
    """Shows a balance, and the allocations that the key may see."""
    with connect(options.url) as client:
        balance = client.datasets.budget(options.dataset)
    output.show(balance, name="dataset_id")
    if balance.allocations and not output.as_json and not output.quiet:
        output.write(f"\n{Table([each.facts() for each in balance.allocations])}")
    return OK


def what_if(options: Namespace, output: Output) -> int:
    """Shows the consequence of a job, a limit or an allocation."""
    if options.delta is not None and options.limit is None:
        raise InvalidArgument("--delta belongs to --limit; leave it out for a job or an allocation.")
    with connect(options.url) as client:
        if options.job is not None:
            output.show(client.datasets.preview_job(options.dataset, epsilon=options.job), name="epsilon_after")
            return OK
        if options.limit is not None:
            compared = client.datasets.preview_budget(options.dataset, epsilon=options.limit, delta=options.delta)
        else:
            key, epsilon = options.allocation or (options.end_allocation, None)
            compared = client.datasets.preview_allocation(options.dataset, key, epsilon=epsilon)
    output.show_table(compared, compared.rows(), name="after")
    if compared.after.limit.delta > compared.before.limit.delta:
        say("Costs after it are stated at the larger δ, where the same job has a smaller ε. No job loses its room.")
    say("Nothing was changed.")
    return OK


def verify_ledger(options: Namespace, output: Output) -> int:
    """Verifies a ledger on this machine. The exit code is 1 if it lacks an entry that was noted."""
    with connect(options.url) as client:
        found = client.datasets.verify_ledger(options.dataset, pinned_keys=options.pin)
        balance = client.datasets.recompute_ledger(options.dataset).verifies
    absent = [each for each in options.entry if found.find(each) is None]
    output.show_facts(found.facts() | {"adds_up": balance}, name="newest_hash")
    say(f"Verified on this machine: {found.entries} entries and {found.signatures} signatures.")
    if not balance:
        say("By the server's own verification, the entries do not add up to the balance. Inform the operator.")
    for each in absent:
        say(f"The chain does not contain the entry {each}. It is not the chain of which this entry was noted.")
    if options.pin is None:
        say(_OWN_KEY)
    return OK if balance and not absent else NO


def show_audit_log(options: Namespace, output: Output) -> int:
    """Shows the audit log."""
    with connect(options.url) as client:
        criteria = {name: getattr(options, name) for name in ("actor", "action", "target", "outcome", "since", "until")}
        output.show_list(client.audit_log(**criteria), options.limit)
    return OK


def complete(options: Namespace, output: Output) -> int:
    """Prints the completion script of a shell. It needs no server."""
    output.write(write_script(options.shell, options.commands))
    return OK


COMMANDS: Final[Mapping[str, Callable[[Namespace, Output], int]]] = {
    "login": login,
    "datasets": list_datasets,
    "check": check,
    "upload": upload,
    "quote": quote,
    "run": run,
    "watch": watch,
    "releases": list_releases,
    "download": download,
    "verify": verify,
    "verify-audit": verify_audit,
    "budget": budget,
    "what-if": what_if,
    "verify-ledger": verify_ledger,
    "audit-log": show_audit_log,
    "completion": complete,
}


class _Model:
    """The model of the options, or of a JSON file."""

    def __init__(self, options: Namespace) -> None:
        self._body = _make_model(options) if options.model is None else _read_model(options)

    def to_json(self) -> dict[str, Any]:
        """The ``model`` member of the request."""
        return self._body


def _read_model(options: Namespace) -> dict[str, Any]:
    if options.features or options.target is not None or options.formula is not None:
        raise InvalidArgument("--model holds features and target; leave out --features, --target and --formula.")
    body: dict[str, Any] = read_json(options.model, dict)
    return body


def _make_model(options: Namespace) -> dict[str, Any]:
    if options.formula is not None:
        if options.features or options.target is not None:
            raise InvalidArgument("--formula holds features and target; leave out --features and --target.")
        from corevault.formula import parse_formula  # noqa: PLC0415 - a command's own import

        found = parse_formula(options.formula)
        options.features, options.target = [*found.features], found.target
    if not options.features:
        raise InvalidArgument("A model needs --features with names of columns, --formula, or --model with a JSON file.")
    if options.target is None and options.family != "gaussian-mean":
        raise InvalidArgument(f"{options.family} needs --target with the name of a column.")
    body = {"family": options.family, "features": options.features, "prior": {"scale": options.prior_scale}}
    optional = {"target": options.target, "noise_scale": options.noise_scale}
    return body | {name: value for name, value in optional.items() if value is not None}


def _job_options(options: Namespace) -> dict[str, Any]:
    return {"size": options.size} | ({} if options.method is None else {"method": options.method})


def _wait(client: Client, job: Job, output: Output) -> Job:
    """Waits for the end of a job. Without an answer, a sentence states that the job continues."""
    try:
        return client.jobs.wait(job, progress=output.shows_progress)
    except JobFailed:
        raise
    except CorevaultError:
        say(f"The job {job.id} continues on the server; do not submit it again. corevault watch {job.id} waits for it.")
        raise


def _save(client: Client, job: Job, options: Namespace) -> int:
    """Saves the points of a release that has been bought. If it fails, the release is not lost: a sentence names it."""
    if options.output is None or job.release_id is None:
        return OK
    try:
        client.releases.save(job.release_id, options.output)
    except CorevaultError as error:
        say(describe_error(error, options))
        say(
            f"The job {job.id} bought the release {job.release_id}, which was not saved. Do not run it again. "
            f"corevault download {job.release_id} -o FILE saves it at no further cost."
        )
        return NOT_SAVED
    return OK


def _ask(prompt: str) -> str:
    stored = find_credentials() if find_file().exists() else None
    if not sys.stdin.isatty():
        if stored is None:
            raise InvalidArgument("There is no terminal to ask for the address; write corevault login URL.")
        return stored.url
    sys.stderr.write(prompt)
    return sys.stdin.readline().strip() or (stored.url if stored else "")

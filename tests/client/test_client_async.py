"""The asynchronous client: the same surface as ``Client``, against the real application in this process."""

import asyncio
import inspect
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Any

import anyio
import httpx
import pytest
from corevault import (
    AsyncClient,
    BudgetExceeded,
    Client,
    ClientClosed,
    ConnectionFailed,
    InvalidArgument,
    Job,
    LogisticRegression,
    NotFound,
    Schema,
    UntrustedRelease,
    WrongType,
    binary,
    categorical,
    integer,
    real,
)
from corevault._check import check_table
from corevault._io import iterate, run

from app.main import create_app
from tests.client.fake import DATASET, Answer, Published, Script, job, ok, problem
from tests.factories import rows
from tests.factories.worker import House

SCHEMA = Schema(
    integer("age", 17, 90), real("hours", 1, 99), categorical("sex", ["Female", "Male"]), binary("income_gt_50k")
)
MODEL = LogisticRegression(features=["age", "hours", "sex"], target="income_gt_50k")
TABLE = {
    "age": [17 + n * 7 % 74 for n in range(200)],
    "hours": [1 + n * 13 % 99 for n in range(200)],
    "sex": ["Female" if n % 2 else "Male" for n in range(200)],
    "income_gt_50k": [n % 3 == 0 for n in range(200)],
}
URL = "http://vault.test"


class Inside:
    """Opens asynchronous clients of one application in this process."""

    def __init__(self, house: House) -> None:
        self.house, self._app = house, create_app(house.services, metrics=False)

    def client(self, key: str | None) -> AsyncClient:
        return AsyncClient("http://corevault.test", key, transport=httpx.ASGITransport(self._app), max_retries=0)

    async def work(self) -> None:
        """Lets the worker empty its queue, in a thread."""
        await anyio.to_thread.run_sync(self.house.work)


@pytest.fixture
def inside(house: House) -> Inside:
    return Inside(house)


def _scripted(*answers: Answer, max_retries: int = 2) -> tuple[Script, AsyncClient]:
    script = Script(list(answers))
    return script, AsyncClient(URL, "cv_1", transport=httpx.MockTransport(script), max_retries=max_retries)


@pytest.mark.long
def test_an_owner_and_an_analyst_use_the_real_application(inside: Inside, owner: rows.Key, analyst: rows.Key) -> None:
    async def go() -> None:
        async with inside.client(owner.secret) as client:
            me = await client.me()
            assert (me.id, me.role) == (owner.id, "owner")
            dataset = await client.datasets.create("census", SCHEMA, slots=400, epsilon=2.0, shared_with=[analyst.id])
            await client.datasets.upload(dataset, TABLE, resumable=True)
            await inside.work()
            assert (await client.datasets.wait_until_ready("census")).status == "ready"
        async with inside.client(analyst.secret) as client:
            prices = await client.quote_rows("census", MODEL, epsilons=[0.1, 0.5])
            assert [row["affordable"] for row in prices] == [True, True]
            with pytest.raises(BudgetExceeded):
                await client.jobs.submit("census", MODEL, epsilon=5.0)
            submitted = await client.jobs.submit("census", MODEL, size=20, epsilon=0.5)
            ended, _ = await asyncio.gather(client.jobs.wait(submitted, poll_seconds=0.01), inside.work())
            assert ended.release_id is not None
            names = [event.name async for event in client.jobs.events(ended)]
            assert names[-1] == "end"
            with pytest.raises(NotFound):
                await client.datasets.get("unknown")
        async with inside.client(None) as public:
            with pytest.warns(UntrustedRelease) as warned:
                core = await public.releases.download(ended.release_id)
            assert warned[0].filename == __file__
            assert core.u.shape == (20, 4)
            assert list(core.posterior().names) == ["age", "hours", "sex=Male", "intercept"]
            statement = await public.releases.verify(ended.release_id, formats=["csv"])
            assert statement["release_id"] == ended.release_id

    asyncio.run(go())


def test_all_pages_are_read_from_the_real_application(inside: Inside, admin: rows.Key) -> None:
    async def go() -> None:
        async with inside.client(admin.secret) as client:
            made = [(await client.keys.create(f"key {n}", "analyst")).id for n in range(5)]
            page = await client.keys.list(limit=2)
            listed = [key.id async for key in page]
            assert (len(page.items), [each for each in listed if each in made]) == (2, made[::-1])
            await client.keys.revoke(made[0])

    asyncio.run(go())


def _list_calls(kind: type) -> dict[str, Callable[..., Any]]:
    return {name: each for name, each in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}


@pytest.mark.parametrize("place", ["", "datasets", "jobs", "keys", "releases"])
def test_both_clients_have_the_same_calls(place: str) -> None:
    plain, other = Client(URL), AsyncClient(URL)
    blocking = _list_calls(type(getattr(plain, place) if place else plain))
    awaited = _list_calls(type(getattr(other, place) if place else other))
    same_names = {"close": "aclose"}
    assert {same_names.get(name, name) for name in blocking} == set(awaited)
    for name, call in blocking.items():
        twin = awaited[same_names.get(name, name)]
        assert inspect.signature(call).parameters.keys() == inspect.signature(twin).parameters.keys()
        assert inspect.iscoroutinefunction(twin) is (name != "events")
        assert not inspect.iscoroutinefunction(call)
        assert call.__doc__
    plain.close()
    asyncio.run(other.aclose())


def test_many_requests_are_under_way_at_once() -> None:
    under_way, most = 0, 0

    async def answer(request: httpx.Request) -> httpx.Response:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await anyio.sleep(0.01)
        under_way -= 1
        return ok(DATASET)

    async def go() -> None:
        async with AsyncClient(URL, transport=httpx.MockTransport(answer)) as client:
            await asyncio.gather(*(client.datasets.get("ds_1") for _ in range(20)))

    asyncio.run(go())
    assert most == 20


def test_a_cancelled_wait_ends_at_once() -> None:
    async def hang(request: httpx.Request) -> httpx.Response:
        await anyio.sleep_forever()
        raise AssertionError

    async def go() -> None:
        async with AsyncClient(URL, transport=httpx.MockTransport(hang)) as client:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.jobs.wait("job_1"), 0.05)

    asyncio.run(go())


def test_retries_leave_the_loop_free(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(anyio, "sleep", sleep)
    monkeypatch.setattr("time.sleep", pytest.fail)
    script, client = _scripted(problem(429, "rate_limited", retry_after="7"), httpx.ConnectError("no"), ok(DATASET))
    assert asyncio.run(client.datasets.get("ds_1")).id == "ds_1"
    assert (slept[0], len(slept), len(script.seen)) == (7.0, 2, 3)


def test_tables_are_checked_and_read_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def check(*arguments: Any) -> object:
        threads.append(threading.get_ident())
        return check_table(*arguments)

    monkeypatch.setattr("corevault.resources.datasets.check_table", check)
    _, client = _scripted(ok(DATASET))

    async def go() -> None:
        async with client:
            await client.datasets.upload("ds_1", {"age": [1.0, 2.0]})

    asyncio.run(go())
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()


def test_uploaded_chunks_arrive_whole_and_in_order() -> None:
    script, client = _scripted(ok(DATASET))

    async def receive(request: httpx.Request) -> httpx.Response:
        await request.aread()
        return script(request)

    client = AsyncClient(URL, transport=httpx.MockTransport(receive))
    chunks = [b"age\n", b"1\n", b"2\n"]
    asyncio.run(client.datasets.upload("ds_1", iter(chunks)))
    assert script.bodies[-1] == b"age\n1\n2\n"


def test_events_are_resumed_after_a_broken_stream() -> None:
    def stream(*chunks: str) -> httpx.Response:
        class Chunks(httpx.AsyncByteStream):
            async def __aiter__(self) -> Any:
                for chunk in chunks:
                    yield chunk.encode()
                raise httpx.ReadError("lost")

        return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, stream=Chunks())

    first = stream('id: 1\nevent: progress\ndata: {"fraction": 0.5}\n\n')
    second = stream("id: 2\nevent: end\ndata: {}\n\n")
    script, client = _scripted(ok(job("running")), first, second, ok(job("succeeded", release_id="rel_1")))
    assert asyncio.run(client.jobs.wait("job_1")).release_id == "rel_1"
    assert script.seen[2].headers["Last-Event-ID"] == "1"


def test_a_stream_that_is_left_early_is_closed() -> None:
    closed: list[bool] = []

    async def stream() -> AsyncGenerator[int, None]:
        try:
            yield 1
            yield 2
        finally:
            closed.append(True)

    items = stream()  # this reference keeps the garbage collector from closing it
    for first in iterate(items):
        assert first == 1
        break
    assert (closed, items is not None) == ([True], True)


def test_a_page_is_not_iterated_in_the_wrong_way() -> None:
    _, client = _scripted(ok({"items": [DATASET], "next_cursor": None}))
    page = asyncio.run(client.datasets.list())
    with pytest.raises(WrongType, match="use async for, or items"):
        list(page)
    with pytest.raises(WrongType, match="use async for"):
        asyncio.run(client.releases.verify("rel_1", pinned_keys=page))  # type: ignore[arg-type]
    assert [each.id for each in page.items] == ["ds_1"]


def test_errors_of_both_clients_are_the_same() -> None:
    calls: list[tuple[Callable[[], Answer], Callable[[Any], Any], type[Exception]]] = [
        (lambda: ok({}), lambda client: client.datasets.get(3), WrongType),
        (lambda: ok({}), lambda client: client.releases.points("rel_1", "xlsx"), InvalidArgument),
        (lambda: problem(404, "not_found"), lambda client: client.jobs.get("job_1"), NotFound),
        (lambda: httpx.ConnectError("no"), lambda client: client.me(), ConnectionFailed),
    ]
    for answer, call, kind in calls:
        with Script([answer()]).client(max_retries=0) as plain, pytest.raises(kind) as raised:
            call(plain)
        _, other = _scripted(answer(), max_retries=0)
        with pytest.raises(kind) as raised_there:
            asyncio.run(call(other))
        assert str(raised.value) == str(raised_there.value)


def test_a_closed_client_says_so() -> None:
    _, client = _scripted(ok(DATASET))

    async def go() -> None:
        async with client:
            pass
        await client.me()

    with pytest.raises(ClientClosed):
        asyncio.run(go())


def test_clients_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COREVAULT_URL", "http://env.test")
    monkeypatch.setenv("COREVAULT_API_KEY", "cv_1")
    assert repr(AsyncClient.from_env()) == "AsyncClient('http://env.test')"


def test_warnings_name_the_line_of_the_caller() -> None:
    """Neither the loop nor this package is the place to look at."""
    published = Published()
    published.release["reliability"] = published.statement["reliability"] = {"grade": "centre-only", "reasons": []}
    with Script([published]).client() as client, pytest.warns(UntrustedRelease) as warned:
        client.releases.download("rel_1")
    assert warned[0].filename == __file__


def test_blocking_calls_never_suspend() -> None:
    async def suspend() -> None:
        await asyncio.sleep(0)

    with pytest.raises(AssertionError, match="has suspended"):
        run(suspend())


def test_types_of_both_clients() -> None:
    """Checked by mypy: a call gives the object, or an awaitable of it."""

    def use(plain: Client, other: AsyncClient) -> tuple[Job, Coroutine[Any, Any, Job]]:
        awaited: Awaitable[Job] = other.jobs.get("job_1")
        assert awaited is not None
        return plain.jobs.get("job_1"), other.jobs.get("job_1")

    assert callable(use)

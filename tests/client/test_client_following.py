"""Waiting for a job: by events, which are resumed, and by polling without events."""

import time

import httpx
import pytest
from corevault import ConnectionFailed, JobEvent, JobFailed, UnexpectedReply, WaitTimeout
from corevault._sse import EventParser, ServerEvent

from tests.client.fake import Answer, Script, events, job, ok, problem

DONE = ok(job("succeeded", release_id="rel_1", progress={"fraction": 1.0, "stage": "done"}))
RUNNING = ok(job("running"))
STEP = 'id: 1\nevent: progress\ndata: {"fraction": 0.5, "stage": "running"}\n\n'
END = 'id: 2\nevent: end\ndata: {"status": "succeeded"}\n\n'


def test_events_are_parsed_by_the_standard() -> None:
    lines = [": comment", "id: 7", "event:end", "data: a", "data:  b", "", "", "retry: 3", "data", "", "data: cut off"]
    parser = EventParser()
    assert [event for event in map(parser.feed, lines) if event is not None] == [
        ServerEvent("end", "a\n b", "7"),
        ServerEvent("message", "", "7"),
    ]


def test_events_of_a_job_end_with_the_end_event() -> None:
    script = Script([events(": hello\n\n", STEP, END, "data: {}\n\n")])
    with script.client() as client:
        seen = list(client.jobs.events("job_1", last_event_id="0"))
    assert [(event.name, event.id) for event in seen] == [("progress", "1"), ("end", "2")]
    assert seen[0] == JobEvent(name="progress", data={"fraction": 0.5, "stage": "running"}, id="1")
    assert script.seen[0].headers["Last-Event-ID"] == "0"
    assert script.seen[0].headers["Accept"] == "text/event-stream"


def test_a_wait_follows_events_and_reads_the_job_at_the_end(naps: list[float]) -> None:
    script = Script([RUNNING, events(STEP, END), DONE])
    with script.client() as client:
        assert client.jobs.wait("job_1").release_id == "rel_1"
    assert [request.url.path for request in script.seen] == [
        "/v1/jobs/job_1",
        "/v1/jobs/job_1/events",
        "/v1/jobs/job_1",
    ]
    assert naps == []


def test_an_ended_job_is_not_followed() -> None:
    script = Script([DONE])
    with script.client() as client:
        client.jobs.wait("job_1")
    assert len(script.seen) == 1


@pytest.mark.parametrize("breaks", [True, False])
def test_a_broken_stream_is_resumed_after_the_last_event(naps: list[float], breaks: bool) -> None:
    script = Script([RUNNING, events(STEP, breaks=breaks), events(END), DONE])
    with script.client() as client:
        client.jobs.wait("job_1")
    assert "Last-Event-ID" not in script.seen[1].headers
    assert script.seen[2].headers["Last-Event-ID"] == "1"


@pytest.mark.parametrize(
    "refusal",
    [
        problem(404, "not_found"),
        problem(406, "not_acceptable"),
        problem(503, "dependency_unavailable"),
        ok({}),
        events("event: progress\ndata: not json\n\n"),
    ],
)
def test_a_wait_without_a_stream_polls(naps: list[float], refusal: httpx.Response) -> None:
    script = Script([RUNNING, refusal, RUNNING, RUNNING, DONE])
    with script.client() as client:
        assert client.jobs.wait("job_1", poll_seconds=0.2).status == "succeeded"
    assert naps == [0.2, 0.2]


def test_a_wait_polls_after_repeatedly_broken_streams(naps: list[float]) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/events"):
            raise httpx.ReadError("lost")
        return DONE if len(script.seen) > 6 else RUNNING

    script = Script([answer])
    with script.client() as client:
        assert client.jobs.wait("job_1").status == "succeeded"
    assert sum(request.url.path.endswith("/events") for request in script.seen) == 5


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_job_without_a_release_raises(status: str) -> None:
    error = {"code": "run_failed"} if status == "failed" else None
    with Script([ok(job(status, error=error))]).client() as client, pytest.raises(JobFailed) as caught:
        client.jobs.wait("job_1")
    assert caught.value.job.status == status
    assert ("run_failed" in str(caught.value)) is (status == "failed")


@pytest.mark.parametrize("stream", [events(STEP, END), problem(404, "not_found")])
def test_a_wait_ends_after_its_timeout(
    monkeypatch: pytest.MonkeyPatch, naps: list[float], stream: httpx.Response
) -> None:
    ticks = iter(range(1000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))
    answers: list[Answer] = [RUNNING, stream, RUNNING]
    with Script(answers).client() as client, pytest.raises(WaitTimeout):
        client.jobs.wait("job_1", timeout_seconds=3.0)


def test_the_bar_shows_the_fraction_of_planned_steps(capsys: pytest.CaptureFixture[str]) -> None:
    with Script([RUNNING, events(STEP, END), DONE]).client() as client:
        client.jobs.wait("job_1", progress=True)
    assert "100%" in capsys.readouterr().err


def test_events_without_a_stream_raise_an_error() -> None:
    with Script([ok({})]).client() as client, pytest.raises(UnexpectedReply):
        list(client.jobs.events("job_1"))
    with Script([httpx.ConnectError("refused")]).client() as client, pytest.raises(ConnectionFailed):
        list(client.jobs.events("job_1"))

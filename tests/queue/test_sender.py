"""Messages contain a task's name and an id, arrive complete, and may be lost."""

import threading
from pathlib import Path

import pytest
from celery import Celery
from kombu.exceptions import OperationalError

from app.queue import INGEST_CONTENT, RUN_JOB, SUM_PARTITION, TASKS_QUEUE
from app.queue.sender import CeleryQueue, make_celery_settings

pytestmark = pytest.mark.long


def _receive(data_dir: Path, count: int) -> list[tuple[str, object]]:
    celery = Celery("receiver", set_as_current=False, fixups=[])
    celery.conf.update(make_celery_settings("filesystem://", data_dir))
    received: list[tuple[str, object]] = []
    with celery.connection_for_read() as connection, connection.SimpleQueue(TASKS_QUEUE) as queue:
        for _ in range(count):
            message = queue.get(timeout=5)
            received.append((message.headers["task"], message.payload[0]))
            message.ack()
    celery.close()
    return received


def test_messages_arrive_once_and_in_order(tmp_path: Path) -> None:
    queue = CeleryQueue("filesystem://", tmp_path)
    queue.send(RUN_JOB, "job_1")
    queue.send(INGEST_CONTENT, "ct_1")
    queue.close()
    assert _receive(tmp_path, 2) == [(RUN_JOB, ["job_1"]), (INGEST_CONTENT, ["ct_1"])]
    assert list((tmp_path / "broker" / "messages").iterdir()) == []


def test_a_group_is_one_message_for_each_identifier(tmp_path: Path) -> None:
    queue = CeleryQueue("filesystem://", tmp_path)
    identifiers = [f"job_1:1:0:{partition}" for partition in range(3)]
    queue.send_group(SUM_PARTITION, identifiers)
    queue.send_group(SUM_PARTITION, [])
    queue.close()
    received = _receive(tmp_path, 3)
    assert sorted(received, key=str) == [(SUM_PARTITION, [identifier]) for identifier in identifiers]
    assert list((tmp_path / "broker" / "messages").iterdir()) == []


def test_a_file_that_is_no_message_is_skipped(tmp_path: Path) -> None:
    queue = CeleryQueue("filesystem://", tmp_path)
    queue.send(RUN_JOB, "job_1")
    queue.close()
    messages = tmp_path / "broker" / "messages"
    (messages / f"0.{TASKS_QUEUE}.msg").write_bytes(b"\x80\x04canary")
    (messages / f"1.{TASKS_QUEUE}.msg").write_text("{")
    assert _receive(tmp_path, 1) == [(RUN_JOB, ["job_1"])]
    assert list(messages.glob("*.taken")) == []


def test_only_the_user_may_open_the_brokers_folders(tmp_path: Path) -> None:
    make_celery_settings("filesystem://", tmp_path)
    folders = [tmp_path / "broker", *(tmp_path / "broker").iterdir()]
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}


def test_concurrent_receivers_get_each_message_once(tmp_path: Path) -> None:
    """One receiver takes each message, after it is complete."""
    sent = [f"job_{number}" for number in range(40)]
    received: list[tuple[str, object]] = []
    receivers = [threading.Thread(target=lambda: received.extend(_receive(tmp_path, 10))) for _ in range(4)]
    for receiver in receivers:
        receiver.start()
    queue = CeleryQueue("filesystem://", tmp_path)
    for identifier in sent:
        queue.send(RUN_JOB, identifier)
    for receiver in receivers:
        receiver.join()
    queue.close()
    assert sorted(str(identifier) for _, identifier in received) == sorted(str([identifier]) for identifier in sent)


def test_a_broker_that_does_not_answer_costs_only_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """W10: the database decides; the sweeper sends a lost message again."""

    def refuse(*_: object, **__: object) -> None:
        raise OperationalError("redis://user:canary-7461@away")

    queue = CeleryQueue("redis://127.0.0.1:1/0", tmp_path)
    monkeypatch.setattr(Celery, "send_task", refuse)
    queue.send(RUN_JOB, "job_1")
    captured = capsys.readouterr()
    assert "OperationalError" in captured.out + captured.err
    assert "canary-7461" not in captured.out + captured.err


def test_only_json_is_accepted_and_no_result_is_kept(tmp_path: Path) -> None:
    """W3: no result backend, no pickles, no remote control."""
    settings = make_celery_settings("redis://127.0.0.1/0", tmp_path)
    assert settings["accept_content"] == ["json"]
    assert settings["result_backend"] is None
    assert settings["task_ignore_result"] is True
    assert settings["worker_enable_remote_control"] is False
    assert not (tmp_path / "broker").exists()


@pytest.mark.slow
def test_the_broker_states_whether_it_accepts_messages(tmp_path: Path) -> None:
    for url, there in (("filesystem://", True), ("redis://127.0.0.1:1", False), ("amqp://127.0.0.1:1", False)):
        queue = CeleryQueue(url, tmp_path)
        assert queue.answers() is there
        queue.close()

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from silkline.errors import ConfigError, JobError
from silkline.frontier.liveness import WorkerLock, remove_locks


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return WorkerLock.directory_of(tmp_path / "job.db")


def worker(directory: Path, name: str) -> WorkerLock:
    lock = WorkerLock(directory, name)
    lock.take()
    return lock


def test_the_living_answer_the_roll_call_and_only_they_keep_their_files(directory: Path) -> None:
    one, two = worker(directory, "one"), worker(directory, "two")
    (directory / "killed").touch()
    with one.roll_call() as living:
        assert sorted(living) == ["one", "two"]
        assert living[0] == "one"
    assert sorted(os.listdir(directory)) == ["one", "two"]
    two.drop()
    with one.roll_call() as living:
        assert living == ["one"]
    one.drop()
    assert not directory.exists()


def test_a_roll_call_that_fails_leaves_the_traces_of_the_dead(directory: Path) -> None:
    one = worker(directory, "one")
    (directory / "killed").touch()
    with pytest.raises(RuntimeError), one.roll_call():
        raise RuntimeError
    assert one.has_company()
    with one.roll_call():
        pass
    assert not one.has_company()
    one.drop()


def test_a_killed_process_is_dead_at_once(directory: Path) -> None:
    body = (
        "import sys, time; from pathlib import Path; from silkline.frontier.liveness import WorkerLock\n"
        f"WorkerLock(Path({str(directory)!r}), 'other').take(); print(flush=True); time.sleep(600)"
    )
    here = worker(directory, "here")
    with subprocess.Popen([sys.executable, "-c", body], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with here.roll_call() as living:
            assert living == ["here", "other"]
        other.kill()
    with here.roll_call() as living:
        assert living == ["here"]
    here.drop()


def test_workers_that_come_and_go_while_the_roll_is_called_are_never_taken_for_dead(directory: Path) -> None:
    """The file of a newcomer is for a moment there without its lock."""
    caller, stop, lost = worker(directory, "caller"), threading.Event(), []

    def come_and_go(name: str) -> None:
        for n in range(150):
            lock = worker(directory, f"{name}-{n}")
            with caller_of(directory).roll_call() as living:
                if f"{name}-{n}" not in living:
                    lost.append(f"{name}-{n}")
            lock.drop()

    def call() -> None:
        while not stop.is_set():
            with caller.roll_call():
                pass

    threads = [threading.Thread(target=come_and_go, args=(name,)) for name in "ab"]
    calling = threading.Thread(target=call)
    calling.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    calling.join()
    assert lost == []
    caller.drop()


def caller_of(directory: Path) -> WorkerLock:
    return WorkerLock(directory, "bystander")


def test_locks_are_removed_unless_a_worker_lives(tmp_path: Path, directory: Path) -> None:
    one = worker(directory, "one")
    (directory / "killed").touch()
    with pytest.raises(JobError, match="in use by one: end that crawl first"):
        remove_locks(tmp_path / "job.db")
    one.drop()
    directory.mkdir(exist_ok=True)
    (directory / "killed").touch()
    remove_locks(tmp_path / "job.db")
    assert not directory.exists()
    remove_locks(tmp_path / "job.db")


def test_a_place_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"cannot write .*; check the permissions"):
        WorkerLock(tmp_path / "file" / "workers", "one").take()

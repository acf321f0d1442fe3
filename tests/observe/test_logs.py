from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog

from silkline.errors import ConfigError
from silkline.events import Event, Kept, ProxyFailed, Seeded, Steered, Stopping, Trouble, Visited
from silkline.observe.logs import LogHook, close, configure
from silkline.outcome import Dead, Done, Lease, Outcome, RetryLater, Verdict
from silkline.request import Request
from silkline.response import Response
from silkline.values import LogLevel

LEASE = Lease(Request("http://127.0.0.1/a"), token=1, fingerprint=2, host="http://127.0.0.1:80", deliveries=3)
Logged = Callable[..., list[dict[str, Any]]]


def visited(verdict: Verdict, status: int | None = None) -> Visited:
    response = None if status is None else Response(LEASE.request.url, status, (), b"", LEASE.request)
    return Visited(Outcome(LEASE, verdict), response, seconds=0.25)


@pytest.fixture
def logged(tmp_path: Path) -> Logged:
    """The JSON lines that some events leave in the file."""

    def run(*events: Event, level: LogLevel = "info", **options: Any) -> list[dict[str, Any]]:
        path = tmp_path / "crawl.log"
        logger = configure(level, str(path), "shop", console=False, **options)
        hook = LogHook(logger)
        for event in events:
            hook(event)
        close(logger)
        return [json.loads(line) for line in path.read_text().splitlines()]

    return run


def test_a_retry_is_a_warning_with_url_and_cause(logged: Logged) -> None:
    (entry,) = logged(visited(RetryLater(1.5, "http_503", "HTTP status 503"), status=503))
    assert entry.pop("timestamp")
    assert entry == {
        "level": "warning",
        "event": "visit failed, to be retried",
        "job": "shop",
        "url": "http://127.0.0.1/a",
        "cause": "http_503",
        "error": "HTTP status 503",
        "status": 503,
        "deliveries": 3,
        "after": 1.5,
        "seconds": 0.25,
    }


def test_a_dead_letter_is_an_error(logged: Logged) -> None:
    (entry,) = logged(visited(Dead("dns", "no such host")))
    assert (entry["level"], entry["cause"], entry["error"]) == ("error", "dns", "no such host")
    assert "exception" not in entry
    assert "status" not in entry


@pytest.mark.parametrize(
    "text",
    [
        "ValueError: no price\nTraceback (most recent call last):\n  line 3\nValueError: no price",
        "Traceback (most recent call last):\n  line 3\nValueError: no price\n",
    ],
)
def test_a_handler_error_has_one_line_and_the_whole_traceback(logged: Logged, text: str) -> None:
    (entry,) = logged(visited(Dead("handler", text)))
    assert entry["error"] == "ValueError: no price"
    assert "line 3" in entry["exception"]


def test_the_password_in_a_url_is_not_logged(logged: Logged) -> None:
    request = Request("http://me:s3cret@127.0.0.1/a:b@c?d:e@f")
    event = Visited(Outcome(msgspec.structs.replace(LEASE, request=request), Dead("dns", "")), None, 0.1)
    (entry,) = logged(event)
    assert entry["url"] == "http://me:***@127.0.0.1/a:b@c?d:e@f"


def test_pages_that_are_done_are_logged_at_debug_only(logged: Logged) -> None:
    assert logged(visited(Done(), status=200), Kept(1, 0, 0, 1, 1, 0)) == []
    (entry,) = logged(visited(Done(), status=200), level="debug")
    assert (entry["event"], entry["status"], entry["level"]) == ("page done", 200, "debug")


def test_failures_of_proxies_are_logged_at_debug_only(logged: Logged) -> None:
    failed = ProxyFailed("http://proxy:1 (proxies.txt, line 3)", "the proxy cannot be reached")
    assert logged(failed) == []
    (entry,) = logged(failed, level="debug")
    assert (entry["event"], entry["proxy"], entry["error"]) == ("proxy failed", failed.proxy, failed.error)


def test_what_an_operator_should_know_is_logged(logged: Logged) -> None:
    entries = logged(
        Seeded(added=3, duplicate=1, invalid=1, reasons=("line 4: no scheme",)),
        Trouble("the disk is nearly full"),
        Kept(0, 0, 0, 0, 0, stale=2),
        Steered({"concurrency": "9"}),
        Stopping("interrupted"),
    )
    assert [(entry["level"], entry["event"]) for entry in entries] == [
        ("info", "seeds read"),
        ("warning", "invalid seed"),
        ("warning", "the disk is nearly full"),
        ("info", "outcomes came too late to count"),
        ("info", "live settings"),
        ("info", "stopping"),
    ]
    assert entries[0]["added"] == 3
    assert (entries[1]["cause"], entries[1]["error"]) == ("bad_task", "line 4: no scheme")
    assert entries[4]["concurrency"] == "9"
    assert entries[5]["reason"] == "interrupted"


def test_the_level_holds(logged: Logged) -> None:
    events = (
        Stopping("finished"),
        visited(RetryLater(1.0, "timeout", "slow")),
        visited(Dead("dns", "no such host")),
    )
    assert [entry["level"] for entry in logged(*events, level="error")] == ["error"]


def test_times_are_utc_in_iso_8601(logged: Logged) -> None:
    (entry,) = logged(Trouble("x"))
    assert entry["timestamp"].endswith("Z")
    assert abs(datetime.fromisoformat(entry["timestamp"]) - datetime.now(UTC)) < timedelta(minutes=5)


def test_a_worker_signs_its_lines(logged: Logged) -> None:
    (entry,) = logged(Trouble("x"), worker="2")
    assert entry["worker"] == "2"


def test_what_the_network_sent_stays_one_line(logged: Logged, capsys: pytest.CaptureFixture[str]) -> None:
    nasty = visited(Dead("protocol", "bad \x1b[2J line \ud83d \x9b31m"))
    (entry,) = logged(nasty)
    assert "bad" in entry["error"]
    logger = configure("info", None, "shop", console=True)
    LogHook(logger)(nasty)
    shown = capsys.readouterr().err
    assert len(shown.splitlines()) == 1
    assert "protocol" in shown
    assert not {"\x1b", "\x9b"} & set(shown)


def test_the_console_form_shows_the_traceback_as_lines(capsys: pytest.CaptureFixture[str]) -> None:
    logger = configure("info", None, "shop", console=True)
    LogHook(logger)(visited(Dead("handler", "ValueError: no price\n  File 'spider.py', line 3\n\x1b[2J")))
    head, *rest = capsys.readouterr().err.splitlines()
    assert "url=http://127.0.0.1/a" in head
    assert "cause=handler" in head
    assert "  File 'spider.py', line 3" in "\n".join(rest)
    assert not any("\x1b" in row for row in rest)


def test_without_file_and_console_nothing_is_written_anywhere(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    logger = configure("debug", None, "shop", console=False)
    LogHook(logger)(visited(Dead("dns", "no such host")))
    logger.error("directly")
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_the_logging_of_the_host_program_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    before = (list(logging.root.handlers), logging.root.level, set(logging.root.manager.loggerDict))
    logger = configure("debug", str(tmp_path / "crawl.log"), "shop", console=False)
    LogHook(logger)(Trouble("only in the file"))
    close(logger)
    assert (list(logging.root.handlers), logging.root.level, set(logging.root.manager.loggerDict)) == before
    assert not structlog.is_configured()
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")
    assert "only in the file" in (tmp_path / "crawl.log").read_text()


def test_two_crawls_in_one_program_keep_their_logs_apart(tmp_path: Path) -> None:
    loggers = [configure("info", str(tmp_path / job), job, console=False) for job in ("a", "b")]
    for logger in loggers:
        logger.info("here")
    for job, logger in zip(("a", "b"), loggers, strict=True):
        close(logger)
        (line,) = (tmp_path / job).read_text().splitlines()
        assert json.loads(line)["job"] == job


@pytest.mark.parametrize("where", ["missing/crawl.log", "."])
def test_a_log_file_that_cannot_be_written_is_a_configuration_error(tmp_path: Path, where: str) -> None:
    with pytest.raises(ConfigError, match=r"cannot write the log file .*--log-file") as raised:
        configure("info", str(tmp_path / where), "shop", console=False)
    assert "\n" not in str(raised.value)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_full_disk_stops_no_crawl(capsys: pytest.CaptureFixture[str]) -> None:
    hook = LogHook(configure("info", "/dev/full", "shop", console=False))
    for _ in range(100):
        hook(visited(Dead("dns", "no such host")))
    assert capsys.readouterr().err.count("log lines are lost") == 1


def test_a_terminal_that_went_away_stops_no_crawl(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr("sys.stderr", stderr)
    hook = LogHook(configure("info", None, "shop", console=True))
    stderr.close()
    hook(Trouble("nobody reads this"))

from __future__ import annotations

import re
import socket
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from silkline.errors import ConfigError
from silkline.events import Seeded
from silkline.observe import metrics
from silkline.observe.metrics import MetricsServer
from silkline.observe.snapshot import Snapshot
from silkline.observe.tally import Tally
from silkline.outcome import Stats
from silkline.version import __version__


def snapshot(tally: Tally, **more: Any) -> Snapshot:
    given: dict[str, Any] = {"stats": Stats(waiting=7, delayed=2, leased=3, done=40, dead=4), "in_flight": 3}
    return Snapshot(
        job="shop",
        allowed=64,
        late=0.25,
        memory=5_000_000,
        started=100.0,
        at=110.0,
        tally=tally,
        phase="crawling",
        **(given | more),
    )


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[MetricsServer, list[Snapshot]]]:
    """One server for all tests, since closing it takes half a second, and what it reads from."""
    snapshots = [snapshot(Tally())]
    serving = MetricsServer("127.0.0.1", 0, lambda: snapshots[-1])
    serving.start()
    yield serving, snapshots
    serving.close()


@pytest.fixture
def current(served: tuple[MetricsServer, list[Snapshot]]) -> list[Snapshot]:
    tally = Tally(
        requests=10,
        pages=6,
        items=18,
        dead_items=2,
        items_dropped={"too old": 3},
        proxies_failed={"http://proxy:1": 4},
        links_added=5,
        links_dropped=1,
        bytes=12_345,
        wire_bytes=6_789,
        stale=1,
        retried={"timeout": 2, "http_503": 1},
        dead={"timeout": 1, "http_404": 1},
        statuses={200: 6, 404: 1, 503: 1},
        seeded=Seeded(added=4, duplicate=2, invalid=1),
    )
    tally.fields.add("Product", {"price": 9.5, "name": None})
    for seconds in (0.004, 0.1, 0.1, 2.0, 100.0):
        tally.latency.add(seconds)
    served[1][:] = [snapshot(tally)]
    return served[1]


@pytest.fixture
def server(served: tuple[MetricsServer, list[Snapshot]], current: list[Snapshot]) -> MetricsServer:
    return served[0]


def scrape(server: MetricsServer) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        assert family.type != "unknown"
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def test_every_figure_of_the_snapshot_is_served(server: MetricsServer) -> None:
    found = scrape(server)
    expected = {
        "silkline_requests_total": 10,
        "silkline_requests_failed_total{cause=timeout}": 3,
        "silkline_requests_failed_total{cause=http_503}": 1,
        "silkline_requests_failed_total{cause=http_404}": 1,
        "silkline_queue_size{state=waiting}": 7,
        "silkline_queue_size{state=delayed}": 2,
        "silkline_queue_size{state=leased}": 3,
        "silkline_pages_total": 6,
        "silkline_items_total": 18,
        "silkline_items_made_total{kind=Product}": 1,
        "silkline_fields_filled_total{field=price,kind=Product}": 1,
        "silkline_fields_filled_total{field=name,kind=Product}": 0,
        "silkline_dead_items_total": 2,
        "silkline_items_dropped_total{reason=too old}": 3,
        "silkline_proxy_failures_total{proxy=http://proxy:1}": 4,
        "silkline_links_added_total": 5,
        "silkline_links_dropped_total": 1,
        "silkline_received_bytes_total": 12_345,
        "silkline_wire_bytes_total": 6_789,
        "silkline_unmodified_total": 0,
        "silkline_cached_total": 0,
        "silkline_stale_commits_total": 1,
        "silkline_retries_total{cause=timeout}": 2,
        "silkline_retries_total{cause=http_503}": 1,
        "silkline_dead_letters_total{cause=timeout}": 1,
        "silkline_dead_letters_total{cause=http_404}": 1,
        "silkline_responses_total{status=200}": 6,
        "silkline_responses_total{status=404}": 1,
        "silkline_responses_total{status=503}": 1,
        "silkline_seeds_total{result=added}": 4,
        "silkline_seeds_total{result=duplicate}": 2,
        "silkline_seeds_total{result=invalid}": 1,
        "silkline_seeds_total{result=refused}": 0,
        "silkline_in_flight": 3,
        "silkline_job_requests{state=done}": 40,
        "silkline_job_requests{state=dead}": 4,
        "silkline_concurrency": 64,
        "silkline_event_loop_lag_seconds": 0.25,
        "silkline_memory_bytes": 5_000_000,
        "silkline_processes": 1,
        "silkline_start_time_seconds": 100,
        f"silkline_info{{job_name=shop,version={__version__}}}": 1,
    }
    assert {name: value for name, value in found.items() if "duration" not in name} == expected


def test_the_documented_names_are_the_served_ones(server: MetricsServer) -> None:
    documented = set(re.findall(r"silkline_\w+", metrics.__doc__ or ""))
    served = {re.sub(r"\{.*|_bucket|_sum$|_count$", "", name) for name in scrape(server)}
    assert documented == served


def test_the_duration_histogram_is_cumulative_and_complete(server: MetricsServer) -> None:
    found = scrape(server)
    buckets = {name: value for name, value in found.items() if "_bucket" in name}
    assert list(buckets.values()) == sorted(buckets.values())
    assert buckets["silkline_request_duration_seconds_bucket{le=0.008}"] == 1
    assert buckets["silkline_request_duration_seconds_bucket{le=0.128}"] == 3
    assert buckets["silkline_request_duration_seconds_bucket{le=32.768}"] == 4
    assert buckets["silkline_request_duration_seconds_bucket{le=+Inf}"] == 5
    assert found["silkline_request_duration_seconds_count"] == 5
    assert found["silkline_request_duration_seconds_sum"] == pytest.approx(102.204)


def test_a_scrape_shows_the_latest_snapshot(server: MetricsServer, current: list[Snapshot]) -> None:
    assert scrape(server)["silkline_pages_total"] == 6
    current.append(snapshot(Tally(pages=9), stats=None))
    found = scrape(server)
    assert found["silkline_pages_total"] == 9
    assert not any("queue_size" in name for name in found), "what is not known is not served as zero"


def test_statuses_that_a_server_makes_up_do_not_make_labels(
    server: MetricsServer, current: list[Snapshot]
) -> None:
    odd = {f"http_{status}": 1 for status in range(100, 1_000)}
    current.append(snapshot(Tally(dead=odd, statuses=dict.fromkeys(range(100, 1_000), 1))))
    found = scrape(server)
    for name in ("silkline_requests_failed_total", "silkline_responses_total"):
        labelled = {key: value for key, value in found.items() if key.startswith(name)}
        assert len(labelled) < 80
        assert sum(labelled.values()) == 900
    assert found["silkline_responses_total{status=9xx}"] == 100


def test_a_scrape_while_the_crawl_counts_on_is_answered(
    server: MetricsServer, current: list[Snapshot]
) -> None:
    tally = current[-1].tally
    ended = threading.Event()

    def count_on() -> None:
        number = 0
        while not ended.wait(0.0001):
            number += 1
            tally.retried[f"cause_{number % 500}"] = number
            tally.statuses[number % 900] = number
            tally.latency.add(0.01)

    counting = threading.Thread(target=count_on)
    counting.start()
    try:
        for _ in range(20):
            found = scrape(server)
            counts = [value for name, value in found.items() if "_bucket" in name]
            assert counts == sorted(counts)
    finally:
        ended.set()
        counting.join()


def test_a_port_in_use_is_a_configuration_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"127\.0\.0\.1:{port}: .*--metrics-port") as raised:
            MetricsServer("127.0.0.1", port, lambda: snapshot(Tally())).start()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 70_000), ("192.0.2.1", 0)])
def test_an_address_that_cannot_be_is_a_configuration_error(host: str, port: int) -> None:
    with pytest.raises(ConfigError, match="cannot serve metrics"):
        MetricsServer(host, port, lambda: snapshot(Tally())).start()


def test_closing_frees_the_port_and_may_be_done_twice(current: list[Snapshot]) -> None:
    server = MetricsServer("127.0.0.1", 0, lambda: current[-1])
    server.close()
    server.start()
    server.close()
    server.close()
    with socket.create_server(("127.0.0.1", server.port)):
        pass


def test_the_registry_of_the_host_program_is_left_alone(server: MetricsServer) -> None:
    scrape(server)
    assert not any(family.name.startswith("silkline") for family in REGISTRY.collect())

"""What holds for the whole suite: where skips count as failures, and what only `make soak` runs."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.crash.launcher import Launcher


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("SILKLINE_SOAK"):
        return
    soak = [item for item in items if item.get_closest_marker("soak")]
    config.hook.pytest_deselected(items=soak)
    items[:] = [item for item in items if not item.get_closest_marker("soak")]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two for each core: most tests wait for servers and processes longer than they compute."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(8, 2 * cores)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):  # type: ignore[no-untyped-def]
    """In CI everything a test needs is there or gets installed, so a skip hides a fault."""
    report = yield
    if report.skipped and os.environ.get("CI") == "true" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which is a failure in CI: {report.longrepr}"
    return report


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the developer's environment nor CI's may change what a test crawls."""
    for name in list(os.environ):
        if name.startswith("SILKLINE_") and name != "SILKLINE_SOAK":
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def launcher() -> Iterator[Launcher]:
    """Starts crawls that are killed; see there."""
    with Launcher() as launcher:
        yield launcher

"""Kills between the hops of redirects."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import servers
from tests.site import Site, redirect

PAGES = 24


@pytest.mark.parametrize("store", ["sqlite", "valkey"])
def test_a_worker_that_is_killed_in_a_chain_leaves_no_slot_taken(tmp_path: Path, store: str) -> None:
    """Each page is reached over three hosts, of which the last one answers nobody before its time."""
    job = f"chains-{random.randrange(2**32):x}"
    where = f"sqlite:///{tmp_path}/job.db" if store == "sqlite" else servers.valkey_url()
    with Site({}) as first, Site({}) as second, Site({f"/{n}": "x" for n in range(PAGES)}) as third:
        first.pages = {f"/{n}": redirect(f"{second.url}/{n}") for n in range(PAGES)}
        second.pages = {f"/{n}": redirect(f"{third.url}/{n}") for n in range(PAGES)}
        command = [sys.executable, "-m", "silkline", "crawl", *(f"{first.url}/{n}" for n in range(PAGES))]
        command += ["--job", job, "--frontier", where, "--per-host", "3"]
        env = {**os.environ, "SILKLINE_LEASE_SECONDS": "3"}
        third.held = True
        with subprocess.Popen(command, env=env, cwd=tmp_path, stderr=subprocess.DEVNULL) as run:
            deadline = time.monotonic() + 60
            while third.in_flight < 3 and time.monotonic() < deadline:
                time.sleep(0.01)
            assert third.in_flight == 3
            time.sleep(random.uniform(0, 0.1))
            run.kill()
        third.held = False
        ended = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=90)
        assert ended.returncode == 0, ended.stderr
        assert f"pages     {PAGES} in" in ended.stderr
        assert third.most_in_flight == 3

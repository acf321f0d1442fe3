"""`silkline export`: of a job in a file, and of one whose workers share a real Valkey."""

from __future__ import annotations

import csv
import json
import os
import shutil
import socket
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from tests import servers
from tests.cli.conftest import Call
from tests.objects.running import S3Server
from tests.sinks.contract.sql import MysqlTarget, PostgresqlTarget
from tests.site import Site


@pytest.fixture
def shared(inside: Call, shop: Site, tmp_path: Path) -> list[str]:
    """Options that name a job on a server; two workers have written parts of its output things.jsonl."""
    return shared_with(".jsonl", inside, shop, tmp_path)


def shared_with(ending: str, inside: Call, shop: Site, folder: Path) -> list[str]:
    named = ["--job", f"export-{zlib.crc32(bytes(folder)):x}", "--frontier", servers.valkey_url()]
    crawl = ["--follow", ".product a", "--follow", "a.next", "-o", f"things{ending}", *named]
    for pages in ("1", "100"):
        done = inside("crawl", f"{shop.url}/", *crawl, "--max-pages", pages)
        assert done.returncode == 0, done.stderr
    assert f"2 part files things.*{ending}" in done.stderr
    assert f"silkline export --job {named[1]} --frontier {named[3]} -o things{ending}" in done.stderr
    assert len(parts(folder)) == 2
    return named


def parts(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.startswith("things."))


def titles(path: Path) -> list[str]:
    return sorted(json.loads(line)["title"] for line in path.read_text().splitlines())


TITLES = sorted(
    [*(f"Page {n}" for n in (1, 2, 3)), *(f"Thing {n}{letter}" for n in (1, 2, 3) for letter in "ab")]
)


def test_the_parts_of_a_shared_job_are_joined(
    inside: Call, shop: Site, shared: list[str], tmp_path: Path
) -> None:
    done = inside("export", *shared, "-o", "all.jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("all.jsonl: 9 rows of 2 files, ")
    assert titles(tmp_path / "all.jsonl") == TITLES
    done = inside("export", *shared, "-o", "all.csv", "--json")
    size = (tmp_path / "all.csv").stat().st_size
    job = shared[1]
    assert json.loads(done.stdout) == {
        "job": job,
        "output": "all.csv",
        "rows": 9,
        "parts": 2,
        "bytes": size,
        "missing": [],
    }
    with (tmp_path / "all.csv").open(newline="") as file:
        assert sorted(row["title"] for row in csv.DictReader(file)) == TITLES


@pytest.mark.parametrize("ending", [".jsonl.gz", ".parquet"])
def test_parts_of_other_formats_are_joined_and_removed_with_the_job(
    inside: Call, shop: Site, tmp_path: Path, ending: str
) -> None:
    shared = shared_with(ending, inside, shop, tmp_path)
    done = inside("export", *shared, "-o", "all.jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    assert titles(tmp_path / "all.jsonl") == TITLES
    done = inside("export", *shared, "-o", f"things{ending}")
    assert (done.returncode, done.stderr) == (0, "")
    done = inside("crawl", f"{shop.url}/", "-o", f"things{ending}", "--fresh", *shared)
    assert done.returncode == 0, done.stderr
    assert len(parts(tmp_path)) == 2, "the joined file, and the part of the new start"


def test_a_part_of_another_machine_is_named_and_its_copy_is_taken(
    inside: Call, shared: list[str], tmp_path: Path
) -> None:
    first, _ = parts(tmp_path)
    (tmp_path / "copies").mkdir()
    shutil.move(tmp_path / first, tmp_path / "copies")
    done = inside("export", *shared, "-o", "all.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"silkline: {tmp_path / first} of {socket.gethostname()} is not here (")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "all.jsonl").exists()

    assert inside("export", *shared, "-o", "all.jsonl", "--parts", "copies").returncode == 0
    assert titles(tmp_path / "all.jsonl") == TITLES

    done = inside("export", *shared, "-o", "some.jsonl", "--partial", "--json")
    assert done.returncode == 0
    assert "is not here" in done.stderr
    assert "left out" in done.stderr
    assert json.loads(done.stdout)["missing"] == [str(tmp_path / first)]
    assert 0 < len(titles(tmp_path / "some.jsonl")) < 9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda path: path.write_bytes(path.read_bytes()[:-3] + b"?}\n"),
            "was changed since its worker wrote it",
        ),
        (lambda path: os.truncate(path, 10), "has 10 bytes, but"),
    ],
)
def test_a_part_that_was_touched_is_refused_in_one_line(
    inside: Call, shared: list[str], tmp_path: Path, change, message: str
) -> None:
    part = tmp_path / parts(tmp_path)[0]
    change(part)
    done = inside("export", *shared, "-o", "all.jsonl")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert f"{part} {message}" in done.stderr
    assert not (tmp_path / "all.jsonl").exists()


def test_fresh_removes_the_parts_of_the_job_and_no_others(
    inside: Call, shop: Site, shared: list[str], tmp_path: Path
) -> None:
    own = parts(tmp_path)
    for name in ("things.jsonl", "things.box-1-00000000.jsonl"):
        (tmp_path / name).write_text("precious\n")
    crawl = ["crawl", f"{shop.url}/", "-o", "things.jsonl", *shared, "--fresh"]
    assert inside(*crawl).returncode == 0
    left = parts(tmp_path)
    assert not set(own) & set(left)
    assert len(left) == 3
    for name in ("things.jsonl", "things.box-1-00000000.jsonl"):
        assert (tmp_path / name).read_text() == "precious\n"
    assert inside("export", *shared, "-o", "all.jsonl").returncode == 0
    assert titles(tmp_path / "all.jsonl") == ["Page 1"]


def test_items_of_a_shared_job_without_an_output_are_shown(inside: Call, shop: Site, tmp_path: Path) -> None:
    named = ["--job", f"shown-{zlib.crc32(bytes(tmp_path)):x}", "--frontier", servers.valkey_url()]
    done = inside("crawl", f"{shop.url}/", *named)
    assert done.returncode == 0, done.stderr
    assert "Page 1" in done.stdout


def test_the_output_of_a_job_in_a_file_is_converted(inside: Call, shop: Site, tmp_path: Path) -> None:
    crawl = ["crawl", f"{shop.url}/", "--item", ".product", "--field", "name=h2", "--job", "shop"]
    assert inside(*crawl, "-o", "a.csv", "-o", "b.db").returncode == 0
    several = inside("export", "-o", "all.jsonl")
    assert several.returncode == 2
    assert several.stderr == "silkline: the job has several outputs, choose one with --from: a.csv, b.db\n"
    nowhere = inside("export", "-o", "all.jsonl", "--from", "a.csv", "--parts", "nodir")
    assert (nowhere.returncode, nowhere.stdout) == (2, "")
    assert nowhere.stderr.startswith("silkline: --parts nodir: there is no such folder; ")
    for source in ("a.csv", "b.db"):
        done = inside("export", "-o", "all.jsonl", "--from", source, "--replace")
        assert done.returncode == 0, done.stderr
        rows = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
        assert rows == [{"url": f"{shop.url}/", "name": f"Thing 1{letter}"} for letter in "ab"]


def test_items_in_the_jobs_own_file_are_exported_and_begun_anew(
    inside: Call, shop: Site, tmp_path: Path
) -> None:
    crawl = ["crawl", f"{shop.url}/", "--item", ".product", "--field", "name=h2", "--job", "shop"]
    own = tmp_path / ".silkline" / "shop.db"
    for words in ([], ["--fresh"]):
        done = inside(*crawl, "-o", ".silkline/shop.db", *words)
        assert done.returncode == 0, done.stderr
        with closing(sqlite3.connect(own)) as db:
            assert db.execute("SELECT name FROM items").fetchall() == [("Thing 1a",), ("Thing 1b",)]
    done = inside("export", "-o", "all.jsonl")
    assert done.stdout.startswith("all.jsonl: 2 rows of 1 file, ")
    assert inside(*crawl, "-o", "a.csv", "--fresh").returncode == 0
    with closing(sqlite3.connect(own)) as db:
        assert not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'items'").fetchall()
        db.execute("CREATE TABLE items (precious)")
        db.commit()
    refused = inside(*crawl, "-o", ".silkline/shop.db")
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[-1] == (
        "silkline: .silkline/shop.db has a table items already: choose another name"
    )


@pytest.mark.parametrize("name", ["a.csv", ".silkline/shop.db", "link.csv"])
def test_an_export_never_takes_the_place_of_what_the_job_needs(
    inside: Call, shop: Site, tmp_path: Path, name: str
) -> None:
    assert inside("crawl", f"{shop.url}/", "--job", "shop", "-o", "a.csv").returncode == 0
    (tmp_path / "link.csv").symlink_to("a.csv")
    before = (tmp_path / name).read_bytes()
    done = inside("export", "-o", name, "--replace")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"silkline: {name} is a file of the job itself: choose another name\n"
    assert (tmp_path / name).read_bytes() == before


def test_a_job_that_is_not_there_is_one_line(inside: Call, tmp_path: Path) -> None:
    done = inside("export", "--job", "none", "--frontier", servers.valkey_url(), "-o", "all.jsonl")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "no job 'none'" in done.stderr
    assert not os.listdir(tmp_path)


def test_a_job_with_its_items_in_a_database_only_is_one_line(
    inside: Call, shop: Site, tmp_path: Path
) -> None:
    server = servers.valkey_url().removeprefix("redis")
    stream = f"redis+stream{server}?stream=export-{zlib.crc32(bytes(tmp_path)):x}"
    done = inside("crawl", f"{shop.url}/", "--job", "shop", "-o", stream)
    assert done.returncode == 0, done.stderr
    done = inside("export", "--job", "shop", "-o", "all.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("silkline: job 'shop' has no items in files; it has: redis+stream://")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "all.jsonl").exists()


@pytest.mark.parametrize("kind", [PostgresqlTarget, MysqlTarget])
def test_a_table_of_a_database_is_exported_by_its_url_alone(
    inside: Call, shop: Site, tmp_path: Path, kind: type[PostgresqlTarget | MysqlTarget]
) -> None:
    target = kind()
    target.drop()
    try:
        done = inside("crawl", f"{shop.url}/", "--item", ".product", "--field", "name=h2", "-o", target.url())
        assert done.returncode == 0, done.stderr
        shutil.rmtree(tmp_path / ".silkline")
        done = inside("export", "--from", target.url(), "-o", "all.jsonl")
        assert (done.returncode, done.stderr) == (0, "")
        assert f"all.jsonl: 2 rows of {target.kind}://" in done.stdout
        rows = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
        assert rows == [{"url": f"{shop.url}/", "name": f"Thing 1{letter}"} for letter in "ab"]
        told = json.loads(inside("export", "--from", target.url(), "-o", "all.csv", "--json").stdout)
        assert (told["job"], told["rows"], told["parts"]) == (None, 2, 1)
    finally:
        target.drop()


def test_an_sqlite_file_and_a_bucket_are_exported_by_their_urls(
    inside: Call, shop: Site, tmp_path: Path
) -> None:
    with S3Server(tmp_path / "bucket") as server:
        outputs = ["-o", "things.db", "-o", server.url("items.jsonl.gz")]
        done = inside("crawl", f"{shop.url}/", "--item", ".product", "--field", "name=h2", *outputs)
        assert done.returncode == 0, done.stderr
        shutil.rmtree(tmp_path / ".silkline")
        for url, read in (("sqlite:///things.db", "things.db"), (server.url("items.jsonl.gz"), "1 file")):
            done = inside("export", "--from", url, "-o", "all.jsonl", "--replace")
            assert (done.returncode, done.stderr) == (0, "")
            assert f"all.jsonl: 2 rows of {read}, " in done.stdout
            rows = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
            assert [row["name"] for row in rows] == ["Thing 1a", "Thing 1b"]


def test_what_export_cannot_read_or_write_is_one_line_without_a_password(inside: Call, shop: Site) -> None:
    assert inside("crawl", f"{shop.url}/", "--job", "shop", "-o", "a.csv").returncode == 0
    url = "postgresql://u:s3cret@127.0.0.1:1/db"
    done = inside("export", "--job", "shop", "-o", url)
    assert "'postgresql://127.0.0.1:1/db': export writes files, not databases and buckets" in done.stderr
    for words, line in (
        (["--from", url], "postgresql://u:***@127.0.0.1:1/db: "),
        (["--from", url.replace("//", "/")], "write two slashes behind postgresql"),
        (["--from", "mongodb://u:s3cret@h/db"], "export does not read mongodb://; it reads postgresql://, "),
        (["--from", url, "--from", "a.csv"], "--from with a URL stands alone"),
        (["--from", url, "--partial"], "--from with a URL stands alone"),
        (["--from", "s3://b/a.csv?table=s3cret"], "'table' is not valid"),
        (["--from", "sqlite:///no.db"], "no.db: No such file"),
    ):
        done = inside("export", "-o", "b.csv", *words)
        assert done.returncode in (2, 3)
        assert line in done.stderr
        assert "s3cret" not in done.stderr
        assert done.stderr.count("\n") == 1
    for words in (
        ["--config", url],
        ["-o", url.replace("//", "/")],
        ["--show-config", "-o", "s3://b/a.csv?access_key_id=s3cret&secret_access_key=s3cret"],
    ):
        done = inside("crawl", f"{shop.url}/", *words)
        assert "s3cret" not in done.stdout + done.stderr

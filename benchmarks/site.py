"""The site that every crawler gets: written once to disk, served by an nginx of our own."""

from __future__ import annotations

import gzip
import os
import pwd
import random
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WORDS = (
    *("anchor", "barrel", "candle", "delta", "ember", "feather", "garden", "harbour", "island", "jacket"),
    *("kettle", "lantern", "meadow", "needle", "orchard", "paper", "quarry", "river", "saddle", "timber"),
    *("umbrella", "valley", "willow", "yonder", "basket", "copper", "drift", "engine"),
)
LINKS = 40
HEAVY_LINKS = 150
MAX_FILES = 10_000


HEAVY_SHARE = 5
"""A heavy page is a lot more work than a plain one: there is one for this many."""


class Missing(Exception):
    """Something the benchmark needs is not on this machine; the message says what to do."""


def write_site(root: Path, pages: int, heavy: int) -> None:
    """Write p/0.html ... (about 10 KB, 40 links each) and h/0.html ... (about 160 KB, 150 links, also
    gzipped) under `root`, unless they are there already. Every page can be reached from p/0.html."""
    if root.exists():
        return
    draft = root.with_name(f"{root.name}.{os.getpid()}")
    (draft / "p").mkdir(parents=True)
    (draft / "h").mkdir()
    dice = random.Random(1)
    paragraphs = [f'<p class="t">{_prose(dice, 60)}</p>\n' for _ in range(500)]
    for number in range(pages):
        (draft / "p" / f"{number}.html").write_text(_page(number, pages, dice.sample(paragraphs, 22)))
    cards = [_card(dice) for _ in range(600)]
    for number in range(heavy):
        html = _heavy_page(number, heavy, dice.sample(cards, HEAVY_LINKS)).encode()
        (draft / "h" / f"{number}.html").write_bytes(html)
        (draft / "h" / f"{number}.html.gz").write_bytes(gzip.compress(html, 6, mtime=0))
    try:
        draft.rename(root)
    except OSError:  # somebody else has just written it
        shutil.rmtree(draft)


def _prose(dice: random.Random, count: int) -> str:
    return " ".join(dice.choices(WORDS, k=count))


def _neighbours(number: int, total: int, count: int) -> list[int]:
    """The next page, so that all can be reached, and others far apart."""
    return [(number + 1) % total, *((number * 7 + step * 131 + 3) % total for step in range(count - 1))]


def _page(number: int, total: int, paragraphs: list[str]) -> str:
    links = "".join(
        f'<li class="item"><a href="/p/{other}.html">Product {other}</a></li>\n'
        for other in _neighbours(number, total, LINKS)
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Product {number}</title>'
        f'<meta name="description" content="All about product {number}"></head>\n'
        f"<body><h1>Product {number}</h1>"
        f'<span class="price">${number % 997}.99</span>\n<ul>\n{links}</ul>\n'
        f"{''.join(paragraphs)}</body></html>\n"
    )


def _card(dice: random.Random) -> str:
    """The body of one card of a heavy page: prose, an icon, and data in a script."""
    classes = " ".join(f"{dice.choice(WORDS)}-{dice.randrange(100)}" for _ in range(6))
    data = ",".join(f"{dice.random():.16f}" for _ in range(20))
    return (
        f'<svg viewBox="0 0 24 24"><path d="M4 12a8 8 0 1 0 16 0a8 8 0 1 0-16 0z"/></svg>'
        f'<p class="{classes}">{_prose(dice, 60)}</p><script>window.data=[{data}]</script></div>\n'
    )


def _heavy_page(number: int, total: int, cards: list[str]) -> str:
    body = "".join(
        f'<div class="card" id="c{position}" data-id="{position}"><a class="link" href="/h/{other}.html">'
        f'<img src="/img/{other}.jpg" srcset="/img/{other}.jpg 1x, /img/{other}-2x.jpg 2x" alt="">'
        f"<h3>Item {other}</h3></a>{card}"
        for position, (other, card) in enumerate(
            zip(_neighbours(number, total, HEAVY_LINKS), cards, strict=True)
        )
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Heavy {number}</title></head>\n'
        f'<body><h1>Heavy {number}</h1><span class="price">${number}.99</span>\n{body}</body></html>\n'
    )


@contextmanager
def served(pages: int, work: Path, tls: bool = False) -> Iterator[tuple[str, Path]]:
    """A site of `pages` plain pages, MAX_FILES at most, and its heavy ones, served while the block runs.

    Gives the base URL, and a folder for what a run writes. work: where sites are kept for later runs.

    Raises Missing where it cannot be served.
    """
    files = min(pages, MAX_FILES)
    root = work / f"site-{files}"
    work.mkdir(exist_ok=True)
    write_site(root, files, max(1, files // HEAVY_SHARE))
    with (
        tempfile.TemporaryDirectory(dir=work, prefix="run-") as scratch,
        serve(root, Path(scratch), tls) as base,
    ):
        yield base, Path(scratch)


@contextmanager
def serve(root: Path, scratch: Path, tls: bool = False) -> Iterator[str]:
    """Serve `root` with nginx on a free port of 127.0.0.1 while the block runs; gives the base URL.

    nginx keeps its own files in `scratch`. tls: with HTTP/2, and a certificate that it signed itself.

    Raises Missing where there is no nginx or it does not start.
    """
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if program is None:
        raise Missing("nginx is not installed; get it with `apt install nginx` or `brew install nginx`")
    port = _free_port()
    config, log = scratch / "nginx.conf", scratch / "nginx.log"
    if tls:
        _write_certificate(scratch)
    config.write_text(_config(root, scratch, port, tls))
    server = subprocess.Popen([program, "-e", str(log), "-c", str(config)])
    try:
        _wait_for(server, port, log)
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise Missing(f"nginx did not start: {log.read_text().strip()}")


def _write_certificate(scratch: Path) -> None:
    program = shutil.which("openssl")
    if program is None:
        raise Missing("openssl is not installed; --tls needs it")
    command = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=127.0.0.1"
    files = ["-keyout", str(scratch / "key.pem"), "-out", str(scratch / "cert.pem")]
    subprocess.run([program, *command.split(), *files], check=True, capture_output=True)


def _config(root: Path, scratch: Path, port: int, tls: bool) -> str:
    # Started by root, nginx would read the files as a user that may not see this directory.
    user = f"user {pwd.getpwuid(0).pw_name};" if os.geteuid() == 0 else ""
    secure = f'ssl http2; ssl_certificate "{scratch}/cert.pem"; ssl_certificate_key "{scratch}/key.pem"'
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = " ".join(f'{kind}_temp_path "{scratch}/{kind}";' for kind in kinds)
    return f"""\
daemon off; worker_processes 1; {user} pid "{scratch}/nginx.pid"; error_log "{scratch}/nginx.log";
events {{ worker_connections 4096; }}
http {{
  {temporary}
  types {{ text/html html; }} default_type text/html; charset utf-8; access_log off;
  sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_timeout 60; keepalive_requests 1000000;
  open_file_cache max=30000 inactive=600s; open_file_cache_valid 600s; gzip_static on;
  http2_max_concurrent_streams 512;
  server {{ listen 127.0.0.1:{port} backlog=4096 {secure if tls else ""}; root "{root}"; }}
}}
"""

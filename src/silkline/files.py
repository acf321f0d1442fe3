"""Files that a crawl makes: where a name may lead, its ending, and how a file appears whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from silkline.errors import SaveError

COMPRESSED = (".gz", ".zst")
"""Endings behind the one that names the format."""

NAMING = ("table", "collection", "stream")
"""Options of an output's URL that say which one of several it is; nothing in them is secret."""


def split_ending(path: str) -> tuple[str, str]:
    """The path without its ending, and the ending: ".jsonl.gz" as a whole."""
    stem, ending = os.path.splitext(path)
    if ending.lower() in COMPRESSED:
        stem, format = os.path.splitext(stem)
        ending = format + ending
    return stem, ending


def is_address(output: str) -> bool:
    """Whether an output is a URL, not the path of a file."""
    return re.match(r"[a-z][a-z0-9+.-]*://", output, re.I) is not None


def is_slip(output: str) -> bool:
    """Whether it was meant as a URL with a user, and lacks a slash behind the scheme."""
    return re.match(r"[a-z][a-z0-9+.-]+:/(?!/).*@", output, re.I | re.S) is not None


def shown_output(output: str) -> str:
    """An output as it may be shown: a URL without user, password and options, but with what names the table,
    collection or stream in it."""
    if not is_address(output) and not is_slip(output):
        return output
    scheme, slashes, rest = re.split(r"(:/+)", output, maxsplit=1)
    # A password may hold a slash that should have been escaped: the last @ ends it.
    place, _, query = rest.rpartition("@")[2].partition("?")
    named = [option for option in query.split("&") if option.partition("=")[0] in NAMING]
    return f"{scheme}{slashes}{place}{'?' if named else ''}{'&'.join(named)}"


def split_folder(output: str) -> tuple[str, str]:
    """A folder's path and its options, as in `pictures/?types=image/*`; of other outputs all is the path."""
    match = re.fullmatch(r"(.*/)\?(\w+=.*)", output, re.S)
    return (output, "") if match is None or is_address(output) else (match[1], match[2])


def is_folder(output: str) -> bool:
    """Whether an output is a folder for files; with an ending it is more likely a slip."""
    path, _ = split_folder(output)
    return path.endswith("/") and not split_ending(path.rstrip("/"))[1]


def is_archive(output: str) -> bool:
    """Whether an output keeps pages, not items."""
    return is_folder(output) or split_ending(output)[1].lower() in (".warc", ".warc.gz")


def file_of(output: str) -> str:
    """The file that says what counts in an output: of a folder its manifest, else the output itself."""
    return os.path.join(split_folder(output)[0], "manifest.jsonl") if is_folder(output) else output


def placed(name: str | os.PathLike[str], folder: str | os.PathLike[str] | None = None) -> Path:
    """The absolute path that `name` stands for.

    A relative name is taken in `folder` (None: the working directory) and never leads out of it, neither by
    ".." nor through a symbolic link; so it may come from a page. An absolute one is the user's own word where
    no folder is given; with a folder it must be inside, too.

    Raises SaveError for a name that leads elsewhere or is no name of a file.
    """
    text = os.fspath(name)
    base = Path(folder or ".").resolve()
    path = base / text
    if "\0" in text or os.path.basename(text) in ("", ".", ".."):
        raise SaveError(f"{text[:200]!r} is no name for a file")
    with saving(path):
        path = path.resolve()  # through a link to the file that it names
        if path.exists() and not path.is_file():
            raise SaveError(f"cannot save to {path}: it is no regular file; choose another name")
    if (folder is not None or not os.path.isabs(text)) and not path.is_relative_to(base):
        hint = "" if folder is not None else "; an absolute path may lead anywhere"
        raise SaveError(f"{text[:200]!r} leads out of the folder {base}{hint}")
    return path


@contextmanager
def saving(path: Path) -> Iterator[None]:
    """Whatever the system says against it becomes a SaveError, one line that names the file."""
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        raise SaveError(f"cannot save to {path}: {getattr(error, 'strerror', None) or error}") from error


def make_private_folder(path: Path) -> None:
    """Make a folder for files that hold cookies and passwords: nobody but its owner may look into it. One
    that is there stays as it is. Raises OSError."""
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)


def make_private(path: Path) -> None:
    """Make an empty file that nobody but its owner can read; one that is there stays as it is. Where that
    cannot be, whoever opens the file will find out."""
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def write_whole(path: Path, data: bytes) -> None:
    """Make `path` hold `data`, durably; at no time is there half of it. Raises SaveError."""
    with saving(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = beside(path)
        try:
            with open(temporary, "xb") as file:
                file.write(data)
            publish(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def move(source: Path, path: Path) -> None:
    """Put the file `source` at `path`, also on another file system. Raises SaveError."""
    with saving(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.replace(source, path)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            temporary = beside(path)
            try:
                shutil.copyfile(source, temporary)
                publish(temporary, path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            source.unlink(missing_ok=True)


def beside(path: Path) -> Path:
    """A name in the same folder that no other file has."""
    return path.with_name(f".{path.name[:100]}.{secrets.token_hex(6)}.part")


def publish(temporary: Path, path: Path) -> None:
    """Make a finished file durable and give it its name."""
    with open(temporary, "rb") as file:
        os.fsync(file.fileno())
    os.replace(temporary, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

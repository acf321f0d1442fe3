"""Find the Crawler in a user's Python file."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from silkline.crawler import Crawler
from silkline.errors import ConfigError


def crawler_from(path: Path, name: str | None = None, command: str = "run") -> Crawler:
    """Import the file, with its folder on sys.path, and return its Crawler.

    name: of the variable, where there are several. command: the one that is to get it.

    Raises ConfigError in one line, with the place in the user's code where there is one.
    """
    module = _import(path)
    found = {key: value for key, value in vars(module).items() if isinstance(value, Crawler)}
    if name is not None:
        if name not in found:
            known = f"there are: {', '.join(found)}" if found else "there is none in the file"
            raise ConfigError(f"{path}: {name!r} is no Crawler; {known}")
        return found[name]
    crawlers = {id(crawler): crawler for crawler in found.values()}
    if not crawlers:
        raise ConfigError(f"{path}: holds no Crawler; write crawler = silkline.Crawler() at its top level")
    if len(crawlers) > 1:
        choice = " or ".join(f"{path}:{key}" for key in found)
        raise ConfigError(f"{path}: holds {len(crawlers)} Crawlers; choose one: silkline {command} {choice}")
    return next(iter(crawlers.values()))


def crawler_named(spider: str, name: str | None = None, command: str = "run") -> tuple[str, Crawler]:
    """The file and the Crawler of FILE or FILE:NAME. Raises ConfigError as `crawler_from` does."""
    path, _, variable = (spider, "", "") if Path(spider).exists() else spider.partition(":")
    return path, crawler_from(Path(path), name or variable or None, command)


def _import(path: Path) -> ModuleType:
    if path.is_dir():
        raise ConfigError(f"{path} is a directory, not a Python file")
    if not path.exists():
        raise ConfigError(f"{path}: no such file")
    # Its other modules may import the file by its own name; a name that is taken stays with its owner.
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else f"spider_{path.stem}"
    loader = importlib.machinery.SourceFileLoader(name, str(path.resolve()))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a SystemExit in the file would end the program without a word
        raise ConfigError(_mistake(path, error)) from error
    return module


def _mistake(path: Path, error: BaseException) -> str:
    """file:line: what went wrong; the line is the last one of the user's own code."""
    reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, ConfigError):
        reason = str(error)
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_shown(Path(error.filename), path)}:{error.lineno}: {error.msg}"
    folder = path.resolve().parent
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        if file.is_relative_to(folder) and "site-packages" not in file.parts:
            return f"{_shown(file, path)}:{frame.lineno}: {reason}"
    return f"{path}: {reason}"


def _shown(file: Path, path: Path) -> Path:
    """As the user wrote it, or relative to that."""
    return (
        path.parent / file.relative_to(folder)
        if file.is_relative_to(folder := path.resolve().parent)
        else file
    )

"""A small S3 server: `server.py PORT FOLDER`. Objects are files, so that it may be killed and started again.

PUT, GET, HEAD and DELETE of objects, listings (version 2), uploads in several parts, and deletions of
several; signatures are not looked at, but for the key "wrong".
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from urllib.parse import quote, unquote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from aiohttp import web

XML = "application/xml"


class Store:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, request: web.Request) -> Path:
        return self.folder / quote(unquote(request.match_info.get("path", "")), safe="")

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if "Credential=wrong" in request.headers.get("Authorization", ""):
            return error(403, "InvalidAccessKeyId")
        bucket = request.match_info["bucket"]
        if bucket == "none":
            return error(404, "NoSuchBucket")
        handler = getattr(self, f"on_{request.method.lower()}")
        answer: web.StreamResponse = await handler(request)
        return answer

    async def on_put(self, request: web.Request) -> web.StreamResponse:
        data = await request.read()
        path = self.path(request)
        if "uploadId" in request.query:
            path = path.with_name(
                f"{path.name}~{request.query['uploadId']}~{int(request.query['partNumber']):05}"
            )
        write(path, data)
        return web.Response(headers={"ETag": f'"{hashlib.md5(data).hexdigest()}"'})

    async def on_post(self, request: web.Request) -> web.StreamResponse:
        path = self.path(request)
        if "uploads" in request.query:
            upload = os.urandom(4).hex()
            return xml(
                f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            )
        if "delete" in request.query:
            body = ElementTree.fromstring(await request.text())
            keys = [element.text or "" for element in body.iter() if element.tag.endswith("Key")]
            for key in keys:
                (self.folder / quote(key, safe="")).unlink(missing_ok=True)
            deleted = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
            return xml(f"<DeleteResult>{deleted}</DeleteResult>")
        parts = sorted(self.folder.glob(f"{path.name}~{request.query['uploadId']}~*"))
        write(path, b"".join(part.read_bytes() for part in parts))
        for part in parts:
            part.unlink()
        return xml('<CompleteMultipartUploadResult><ETag>"x"</ETag></CompleteMultipartUploadResult>')

    async def on_get(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("list-type") == "2":
            prefix = request.query.get("prefix", "")
            names = sorted(unquote(path.name) for path in self.folder.iterdir() if "~" not in path.name)
            found = "".join(
                f"<Contents><Key>{escape(name)}</Key><LastModified>2030-01-01T00:00:00.000Z</LastModified>"
                f"<Size>{(self.folder / quote(name, safe='')).stat().st_size}</Size><ETag>x</ETag></Contents>"
                for name in names
                if name.startswith(prefix)
            )
            return xml(f"<ListBucketResult><IsTruncated>false</IsTruncated>{found}</ListBucketResult>")
        path = self.path(request)
        if not path.exists():
            return error(404, "NoSuchKey")
        headers = {"ETag": '"x"', "Last-Modified": "Tue, 01 Jan 2030 00:00:00 GMT"}
        return web.Response(body=path.read_bytes(), headers=headers)

    on_head = on_get

    async def on_delete(self, request: web.Request) -> web.StreamResponse:
        self.path(request).unlink(missing_ok=True)
        return web.Response(status=204)


def write(path: Path, data: bytes) -> None:
    fresh = path.with_name(f"{path.name}~fresh")
    fresh.write_bytes(data)
    os.replace(fresh, path)


def xml(text: str) -> web.Response:
    return web.Response(text=f'<?xml version="1.0" encoding="UTF-8"?>{text}', content_type=XML)


def error(status: int, code: str) -> web.Response:
    text = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>"
    return web.Response(status=status, text=text, content_type=XML)


if __name__ == "__main__":
    app = web.Application(client_max_size=2**30)
    store = Store(Path(sys.argv[2]))
    app.router.add_route("*", "/{bucket}", store.answer)
    app.router.add_route("*", "/{bucket}/{path:.*}", store.answer)
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)

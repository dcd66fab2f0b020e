"""The beginning of a file at a URL, up to the end of its metadata: some megabytes of a 40 GB file.

Each request asks for a range, twice as long as what is there. A server that ignores ranges sends the whole file: then
its answer is read as far as needed, and closed. After a cut, the next request continues where the last one ended.
What a server says about lengths is compared with what it sends: a file that changes meanwhile is an error, and so are
bytes from another place. `MAX_SECONDS`, `MAX_FAILURES` and `MAX_BYTES` end what does not end by itself.
"""

from __future__ import annotations

import re
import time
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from ..errors import DownloadError
from .model import SPLIT
from .web import MAX_SECONDS, BrokenError, Client, endpoint

TYPE_CHECKING = False
if TYPE_CHECKING:
    import urllib3

FIRST_READ = 1 << 22
"""The range of the first request: half of what Llama 3 needs, and more than most small vocabularies do."""

MAX_BYTES = 1 << 28
"""More than ten times the metadata of any known model."""

MAX_FAILURES = 4
"""How many requests in a row may bring nothing."""

PAUSE_SECONDS = 0.5
"""The pause after a failure; it doubles with each further one."""

PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Statuses that may be different a moment later."""

RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(?:(\d{1,18})|\*)")


class Head:
    """A binary file that reads from a URL. `seen` has the bytes that were read."""

    def __init__(self, url: str) -> None:
        """Raises `DownloadError` if it is not a URL, and `DependencyError` without urllib3."""
        self._url = address(url)
        self._client = Client(self._url, MAX_SECONDS)
        self.url = self._client.name
        self.seen = bytearray()
        self._response: urllib3.BaseHTTPResponse | None = None
        """An open answer of the server, whose next bytes come after `seen`."""
        self._end: int | None = None
        """Where that answer should end; `None` if it does not say."""
        self._total: int | None = None
        self._version: tuple[str | None, str | None] | None = None

    def __enter__(self) -> Head:
        return self

    def __exit__(self, *error: object) -> None:
        self._client.__exit__(*error)

    def read(self, size: int) -> bytes:
        """At most `size` more bytes, and at least one before the end of the file.

        Raises `DownloadError` if the server refuses, breaks off again and again, or contradicts itself.
        """
        start = len(self.seen)
        goal = start + min(size, max(FIRST_READ, start))
        if goal > MAX_BYTES:
            raise DownloadError(f"the metadata is longer than {MAX_BYTES >> 20} MiB", url=self.url)
        failures = 0
        while len(self.seen) < goal and len(self.seen) != self._total:
            before = len(self.seen)
            try:
                self._read_to(goal)
            except BrokenError as error:
                self._response = None
                failures = failures + 1 if len(self.seen) == before else 1
                if failures > MAX_FAILURES or (error.is_unreachable and not self.seen):
                    raise DownloadError(str(error), url=self.url, status=error.status) from None
                self._client.check_time()
                time.sleep(PAUSE_SECONDS * 2 ** (failures - 1))
            else:
                failures = 0
        return bytes(memoryview(self.seen)[start:])

    def _read_to(self, goal: int) -> None:
        """Reads to the end of the open answer, or of a new one, or to `goal`."""
        if self._response is None:
            self._ask(goal)
        while self._response and len(self.seen) < goal and len(self.seen) != self._end:
            part = self._client.read(self._response, goal - len(self.seen))
            self.seen += part
            if not part:
                if self._end is not None:
                    raise BrokenError(f"the answer ends after {len(self.seen)} of {self._end} bytes")
                self._total = self._end = len(self.seen)
        if len(self.seen) == self._end:
            self._response = None

    def _ask(self, goal: int) -> None:
        """Requests the range from the bytes that are known to `goal`. There is no answer if the file ends before it."""
        start = len(self.seen)
        response = self._client.get(self._url, {"range": f"bytes={start}-{goal - 1}"})
        status, headers = response.status, response.headers
        if status in PASSING:
            raise BrokenError(self._client.meaning(status), status)
        if status == 416:  # no such range
            self._total = start
            return
        if status not in (200, 206):
            raise self._client.refusal(response)
        if headers.get("content-encoding", "identity").lower() not in ("", "identity"):
            raise DownloadError("the server compresses the file, although it was asked not to", url=self.url)
        self._check_version((headers.get("etag"), headers.get("last-modified")))
        if status == 206:
            found = RANGE.fullmatch(headers.get("content-range", "").strip())
            if found is None or int(found[1]) != start or int(found[2]) < start:
                raise DownloadError("the server does not send the bytes that were asked for", url=self.url)
            self._check_total(int(found[3]) if found[3] else None)
            self._end = int(found[2]) + 1
        else:
            length = headers.get("content-length", "")
            self._end = int(length) if re.fullmatch(r"\d{1,18}", length) else None
            self._check_total(self._end)
            self._skip(response, start)
        self._response = response

    def _skip(self, response: urllib3.BaseHTTPResponse, count: int) -> None:
        """Passes over what is known already, in an answer of a server that ignores ranges."""
        skipped = 0
        while skipped < count:
            part = self._client.read(response, count - skipped)
            if not part:
                raise BrokenError(f"the answer ends after {skipped} bytes")
            if self.seen[skipped : skipped + len(part)] != part:
                raise self._changed()
            skipped += len(part)

    def _check_version(self, version: tuple[str | None, str | None]) -> None:
        """A file that is another one than before is an error. Only what both answers have is compared."""
        known = self._version or version
        if any(a is not None and b is not None and a != b for a, b in zip(known, version, strict=True)):
            raise self._changed()
        self._version = known

    def _check_total(self, total: int | None) -> None:
        if total is not None:
            if (self._total is not None and total != self._total) or total < len(self.seen):
                raise self._changed()
            self._total = total

    def _changed(self) -> DownloadError:
        return DownloadError("the file changed while it was read", url=self.url)


def address(url: str) -> str:
    """The URL to read: of a split file the first part, and of a page of the Hub about a file, the file."""
    try:
        parts = urlsplit(url)
        path = parts.path
        folder, slash, last = path.rpartition("/")
        split = SPLIT.fullmatch(unquote(last))
        if split is not None:
            path = folder + slash + quote(f"{split['stem']}-00001-of-{split['count']}{unquote(last)[-5:]}")
    except ValueError:  # `Client` says what is wrong
        return url
    if f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower() == endpoint().lower():
        path = re.sub(r"^(/[^/]+/[^/]+)/blob/", r"\1/resolve/", path)
    return urlunsplit(parts._replace(path=path))

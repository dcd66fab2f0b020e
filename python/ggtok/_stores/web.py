"""Requests to web servers, for the beginning of a file and for small lists of JSON.

The client is urllib3, an optional package (`ggtok[hf]`): it is what requests and botocore send their requests with, it
has a maintained release line and no dependencies, and it hands over each redirect and each read, so that what follows
is decided here and nowhere else.

1. Authorization goes to the server that it is for, and to no other, whatever redirects say: `HF_TOKEN` to the one of
   `HF_ENDPOINT` (huggingface.co), a password in a URL to the server of that URL.
2. A redirect may not lead from https to http, and there are at most `MAX_REDIRECTS`.
3. A server has `CONNECT_SECONDS` to accept, `READ_SECONDS` for all headers of an answer, and again for each read of its
   body. Bodies are limited by those who read them.
4. Proxies are those of the environment, and certificates those of the system, both as Python finds them.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any
from urllib.parse import SplitResult, unquote, urljoin, urlsplit, urlunsplit

from ..errors import DependencyError, DownloadError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import urllib3

CONNECT_SECONDS = 10.0
READ_SECONDS = 30.0
MAX_REDIRECTS = 10
MAX_JSON = 1 << 24
"""No list of files is larger."""

READ_AT_ONCE = 1 << 16

NEXT = re.compile(r'<([^<>]+)>\s*;[^,]*\brel="?next"?')
"""The address of the next part, in the header `Link`."""

REDIRECTS = (301, 302, 303, 307, 308)
NO = ("", "0", "no", "off", "false")
"""Values of a variable that mean that it is not set."""

REFUSED = {
    401: "it wants a token (HF_TOKEN), or there is no such repository",
    403: "access is refused: the repository may want its terms accepted, and a token (HF_TOKEN)",
    404: "there is no such file",
    410: "there is no such file any more",
    429: "too many requests: wait a little",
}
"""What a status means to the user."""


def is_set(variable: str) -> bool:
    """Whether a variable of the environment is set to yes."""
    return os.environ.get(variable, "").strip().lower() not in NO


def endpoint() -> str:
    """The address of the Hugging Face Hub, without a slash at its end."""
    return (os.environ.get("MODEL_ENDPOINT") or os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def shown(url: str) -> str:
    """A URL without its password and its query, which may be secret."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def origin(parts: SplitResult) -> tuple[str, str, int]:
    """The server of a URL. Raises `ValueError` if the port is not a number."""
    return parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


class BrokenError(Exception):
    """A request failed in a way that may pass. `is_unreachable`: there was no connection at all."""

    def __init__(self, problem: str, status: int | None = None, *, is_unreachable: bool = False) -> None:
        self.status, self.is_unreachable = status, is_unreachable
        super().__init__(problem)


class Client:
    """Sends requests for one file or repository, and keeps the connections to its servers."""

    def __init__(self, url: str) -> None:
        """`url` is the address that the user gave. Raises `DownloadError` if it is not one."""
        self.name = shown(url)
        self._urllib3 = _urllib3()
        self._pools: dict[tuple[str, str | None], urllib3.PoolManager] = {}
        self._authorization: dict[tuple[str, str, int], str] = {}
        parts = self._checked(url)
        token = os.environ.get("HF_TOKEN", "").strip()
        if token:
            if not re.fullmatch(r"[!-~]+", token):
                raise DownloadError("HF_TOKEN has characters that no token has", url=self.name)
            self._authorization[origin(self._checked(endpoint()))] = f"Bearer {token}"
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            basic = self._urllib3.make_headers(basic_auth=pair)["authorization"]
            self._authorization[origin(parts)] = basic

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        for pool in self._pools.values():
            pool.clear()

    @contextmanager
    def connected(self, host: str | None) -> Iterator[None]:
        """Turns what urllib3 and sockets raise into a `BrokenError`, or a `DownloadError` if that will not pass."""
        errors = self._urllib3.exceptions
        try:
            yield
        except DownloadError:
            raise
        except (errors.HTTPError, OSError, ValueError) as error:
            problem = self._reason(error)
            if isinstance(error, (errors.SSLError, ValueError)):
                raise DownloadError(f"{host}: {problem}", url=self.name) from None
            unreachable = isinstance(error, (errors.ConnectTimeoutError, errors.ProxyError))
            raise BrokenError(f"{host}: {problem}", is_unreachable=unreachable) from None

    def get(self, url: str, headers: dict[str, str] | None = None) -> urllib3.BaseHTTPResponse:
        """The answer to a GET, after redirects, with its body unread.

        Raises `BrokenError` if there is none, and `DownloadError` if redirects do not end or lead to a worse place.
        """
        for _ in range(MAX_REDIRECTS + 1):
            parts = self._checked(url)
            bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))
            sent = {"accept-encoding": "identity", "user-agent": "ggtok"} | (headers or {})
            if authorization := self._authorization.get(origin(parts)):
                sent["authorization"] = authorization
            with self.connected(parts.hostname):
                timeout = self._urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS)
                response = self._pool(parts).request(
                    *("GET", bare), headers=sent, redirect=False, retries=False, preload_content=False, timeout=timeout
                )
            target = response.headers.get("location")
            if response.status not in REDIRECTS or not target:
                return response
            response.close()
            try:
                url = urljoin(bare, target)
            except ValueError:
                raise DownloadError(f"{parts.hostname} redirects to no address", url=self.name) from None
            if parts.scheme == "https" and urlsplit(url).scheme != "https":
                raise DownloadError(f"{parts.hostname} redirects to an address without https", url=self.name)
        raise DownloadError(f"there are more than {MAX_REDIRECTS} redirects", url=self.name)

    def get_json(self, url: str) -> tuple[object, str | None]:
        """The JSON at an address, and the address of the next part if there is one.

        Raises `DownloadError` if the server refuses, or answers with something else or too much.
        """
        import json

        try:
            response = self.get(url, {"accept": "application/json"})
            with closing(response), self.connected(urlsplit(url).hostname):
                if response.status != 200:
                    raise self.refusal(response)
                data = b""
                while part := response.read1(READ_AT_ONCE):
                    data += part
                    if len(data) > MAX_JSON:
                        raise DownloadError("the server's list is too long", url=self.name)
            found = NEXT.search(response.headers.get("link", ""))
            return json.loads(data), urljoin(url, found[1]) if found else None
        except BrokenError as error:
            raise DownloadError(str(error), url=self.name) from None
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
            raise DownloadError("the server answers with something else than JSON", url=self.name) from None

    def refusal(self, response: urllib3.BaseHTTPResponse) -> DownloadError:
        """The error of an answer with another status than was hoped for."""
        return DownloadError(self.meaning(response.status), url=self.name, status=response.status)

    @staticmethod
    def meaning(status: int) -> str:
        """What a status means."""
        return f"the server answers with status {status}" + (f": {REFUSED[status]}" if status in REFUSED else "")

    def _checked(self, url: str) -> SplitResult:
        try:
            parts = urlsplit(url)
            if parts.scheme in ("http", "https") and origin(parts)[1] and not re.search(r"[\0-\x20\x7f]", url):
                return parts
        except ValueError:
            pass
        raise DownloadError(f"{shown_or_less(url)} is not a URL of the web", url=self.name)

    def _pool(self, parts: SplitResult) -> urllib3.PoolManager:
        from urllib.request import getproxies, proxy_bypass

        proxies = getproxies()
        proxy = proxies.get(parts.scheme) or proxies.get("all")
        if proxy and proxy_bypass(parts.hostname or ""):
            proxy = None
        key = parts.scheme, proxy
        if key not in self._pools:
            options: dict[str, Any] = {"ssl_context": _context()} if parts.scheme == "https" else {}
            if proxy is None:
                self._pools[key] = self._urllib3.PoolManager(**options)
            else:
                address = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
                if address.username is not None:
                    pair = f"{unquote(address.username)}:{unquote(address.password or '')}"
                    options["proxy_headers"] = self._urllib3.make_headers(proxy_basic_auth=pair)
                bare = urlunsplit(address._replace(netloc=address.netloc.rpartition("@")[2]))
                self._pools[key] = self._urllib3.ProxyManager(bare, **options)
            self._pools[key].pool_classes_by_scheme = _bounded_pools(self._urllib3)
        return self._pools[key]

    def _reason(self, error: Exception) -> str:
        """What an error means, in a few words."""
        errors = self._urllib3.exceptions
        match error:
            case errors.NameResolutionError():
                return "there is no server of this name, or no network"
            case errors.NewConnectionError():
                return f"no connection ({str(error).rpartition(': ')[2]})"
            case errors.ConnectTimeoutError():
                return f"no connection within {CONNECT_SECONDS:g} s"
            case errors.TimeoutError():
                return f"no answer within {READ_SECONDS:g} s"
            case errors.ProxyError():
                return f"the proxy does not connect ({str(error).rpartition(': ')[2]})"
            case errors.SSLError():
                return f"no secure connection ({error})"
            case errors.ProtocolError() | OSError():
                return "the connection broke"
        return f"the answer is not proper HTTP ({error})"


def shown_or_less(url: str) -> str:
    """A URL without its secrets, or what it is if it cannot be split."""
    try:
        return repr(shown(url))
    except ValueError:
        return "this"


def _bounded_pools(urllib3: Any) -> dict[str, Any]:
    """The classes of connection pools, by scheme, with connections that wait for headers no longer than allowed.

    A time-out counts from byte to byte, so a server that sends one now and then could keep a client for ever.
    """
    import socket
    import threading

    def bounded(pool: Any) -> Any:
        connection = pool.ConnectionCls

        def getresponse(self: Any) -> Any:
            is_late = threading.Event()

            def cut() -> None:
                is_late.set()
                with suppress(OSError, TypeError):  # it is closed already, or the answer has it now
                    # Not the method of a socket with TLS: that drops its state, which the waiting thread still uses.
                    socket.socket.shutdown(self.sock, socket.SHUT_RDWR)

            timer = threading.Timer(READ_SECONDS, cut)
            timer.daemon = True
            timer.start()
            response = None
            try:
                response = connection.getresponse(self)
            finally:
                timer.cancel()
                if is_late.is_set():
                    if response is not None:  # headers that end where the connection was cut
                        response.close()
                    raise TimeoutError
            return response

        return type(
            pool.__name__, (pool,), {"ConnectionCls": type("Bounded", (connection,), {"getresponse": getresponse})}
        )

    return {"http": bounded(urllib3.HTTPConnectionPool), "https": bounded(urllib3.HTTPSConnectionPool)}


def _context() -> ssl.SSLContext:
    """The system's certificates; certifi's if there are none, as in some installations of Python on macOS."""
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if os.name != "nt" and paths.cafile is None and paths.capath is None:
        try:
            import certifi
        except ImportError:
            return context
        context.load_verify_locations(certifi.where())
    return context


def _urllib3() -> Any:
    try:
        import urllib3
    except ImportError:
        raise DependencyError("reading a URL needs urllib3: pip install 'ggtok[hf]'") from None
    return urllib3

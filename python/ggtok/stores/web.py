"""Requests to web servers, for the beginning of a file and for small lists of JSON.

The client is urllib3, an optional package (`ggtok[hf]`): it is what requests and botocore send their requests with, it
has a maintained release line and no dependencies, and it hands over each redirect and each read, so that what follows
is decided here and nowhere else.

1. Authorization goes to the server that it is for, and to no other, whatever redirects say: `HF_TOKEN` to the one of
   `HF_ENDPOINT` (huggingface.co), a password in a URL to the server of that URL.
2. A redirect may not lead from https to http, nor to an address of this machine or its network, unless the user's own
   URL does. There are at most `MAX_REDIRECTS`.
3. A server has `CONNECT_SECONDS` to accept, `READ_SECONDS` until all headers of an answer are there, and again for each
   read of its body, whatever bytes arrive meanwhile. A client has a number of seconds for everything together. The
   sizes of bodies are limited by those who read them.
4. Proxies are those of the environment, and certificates those of the system, both as Python finds them.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import ssl
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack, closing, suppress
from functools import partial
from threading import Thread
from typing import Any, TypeVar
from urllib.parse import SplitResult, unquote, urljoin, urlsplit, urlunsplit

from ..errors import DependencyError, DownloadError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import urllib3

CONNECT_SECONDS = 10.0
READ_SECONDS = 30.0
MAX_SECONDS = 600.0
"""The time for all requests of a client together."""

MAX_REDIRECTS = 10
MAX_LINES = 32
"""How many connections may be open before unused ones are closed."""

MAX_JSON = 1 << 24
"""No list of files is larger."""

READ_AT_ONCE = 1 << 16

REDIRECTS = (301, 302, 303, 307, 308)
NO = ("", "0", "no", "off", "false")
"""Values of a variable that mean that it is not set."""

REFUSED = {
    401: "a token is needed (HF_TOKEN), or the repository does not exist",
    403: "access is refused: the repository may want its terms accepted, and a token (HF_TOKEN)",
    404: "no such file",
    410: "the file was removed",
    429: "too many requests: wait a little",
}
"""What a status means to the user."""

Result = TypeVar("Result")


def is_set(variable: str) -> bool:
    """Whether a variable of the environment is set to yes."""
    return os.environ.get(variable, "").strip().lower() not in NO


def endpoint() -> str:
    """The address of the Hugging Face Hub, without a slash at its end."""
    return (os.environ.get("MODEL_ENDPOINT") or os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def shown(url: str) -> str:
    """A URL without its password and its query, which may be secret. Of what is not one, less."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"{url.partition(':')[0]}://..."
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def origin(parts: SplitResult) -> tuple[str, str, int]:
    """The server of a URL. Raises `ValueError` if the port is not a number."""
    return parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def is_private(host: str) -> bool:
    """Whether an address is of this machine or its network. A name is not looked up."""
    try:
        found = socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)[0][4][0]
        address = ipaddress.ip_address(str(found).partition("%")[0])
    except (OSError, ValueError):
        return host == "localhost" or host.endswith(".localhost")
    return not (getattr(address, "ipv4_mapped", None) or address).is_global


class BrokenError(Exception):
    """A request failed in a way that may pass. `is_unreachable`: it never connected."""

    def __init__(self, problem: str, status: int | None = None, *, is_unreachable: bool = False) -> None:
        self.status, self.is_unreachable = status, is_unreachable
        super().__init__(problem)


class Client:
    """Sends requests for one file or repository, and keeps the connections to its servers. A request ends the answer to
    the one before."""

    def __init__(self, url: str, seconds: float = MAX_SECONDS) -> None:
        """`url` is the address that the user gave. Raises `DownloadError` if it is not one."""
        self.name = shown(url)
        self._seconds, self._deadline = seconds, time.monotonic() + seconds
        self._lines: list[socket.socket] = []
        """Duplicates of the sockets of all connections, by which they can be cut, whoever waits for them."""
        self._may_be_private: bool | None = None
        self._host: str | None = None
        """The server that was asked last."""
        self._answer = ExitStack()
        """Closes the last answer."""
        self._urllib3 = _urllib3()
        self._pools: dict[tuple[str, str | None], urllib3.PoolManager] = {}
        self._authorization: dict[tuple[str, str, int], str] = {}
        parts = self._checked(url)
        token = os.environ.get("HF_TOKEN", "").strip()
        if token:
            if not re.fullmatch(r"[!-~]+", token):
                raise DownloadError("HF_TOKEN has characters that a token cannot have", url=self.name)
            self._authorization[origin(self._checked(endpoint()))] = f"Bearer {token}"
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            basic = self._urllib3.make_headers(basic_auth=pair)["authorization"]
            self._authorization[origin(parts)] = basic

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._answer.close()
        self._cut()
        for pool in self._pools.values():
            pool.clear()

    def check_time(self) -> None:
        """Raises `DownloadError` if the time for everything is over."""
        if time.monotonic() > self._deadline:
            raise DownloadError(f"it takes more than {self._seconds:g} s", url=self.name)

    def read(self, response: urllib3.BaseHTTPResponse, most: int) -> bytes:
        """The next bytes of the body of an answer, at most `most`; none at its end. Raises as `waited` does."""
        return self.waited(partial(response.read1, min(most, READ_AT_ONCE)))

    def waited(self, call: Callable[[], Result]) -> Result:
        """What a call returns that waits for a server, in a separate thread.

        A time-out of a socket counts from byte to byte, so a server that sends one now and then could keep a client for
        ever. Here the time is measured from outside, and when it is over, the connections are cut.

        Raises `BrokenError`, or `DownloadError` if that will not pass.
        """
        self.check_time()
        answer: Future[Result] = Future()

        def work() -> None:
            try:
                answer.set_result(call())
            except BaseException as error:
                answer.set_exception(error)

        Thread(target=work, daemon=True).start()
        errors = self._urllib3.exceptions
        try:
            return answer.result(min(READ_SECONDS, self._deadline - time.monotonic()))
        except BaseException as error:
            answer.add_done_callback(_close)
            self._cut()
            if not isinstance(error, (errors.HTTPError, OSError, ValueError)):
                raise
            self.check_time()
            problem = self._reason(error)
            if isinstance(error, (errors.SSLError, ValueError)):
                raise DownloadError(f"{self._host}: {problem}", url=self.name) from None
            unreachable = isinstance(error, (errors.ConnectTimeoutError, errors.ProxyError))
            raise BrokenError(f"{self._host}: {problem}", is_unreachable=unreachable) from None

    def get(self, url: str, headers: dict[str, str] | None = None) -> urllib3.BaseHTTPResponse:
        """The answer to a GET, after redirects, with its body unread.

        Raises `BrokenError` if there is none, and `DownloadError` if redirects do not end or lead to a worse place.
        """
        for _ in range(MAX_REDIRECTS + 1):
            parts = self._checked(url)
            self._host = parts.hostname
            self._answer.close()
            if len(self._lines) > MAX_LINES:
                self._cut()
            bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))
            sent = {"accept-encoding": "identity", "user-agent": "ggtok"} | (headers or {})
            if authorization := self._authorization.get(origin(parts)):
                sent["authorization"] = authorization
            options: dict[str, Any] = {"headers": sent, "redirect": False, "retries": False, "preload_content": False}
            options["timeout"] = self._urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS)
            response: urllib3.BaseHTTPResponse = self.waited(partial(self._pool(parts).request, "GET", bare, **options))
            self._answer.callback(response.close)
            target = response.headers.get("location")
            if response.status not in REDIRECTS or not target:
                return response
            url = self._followed(bare, target)
        raise DownloadError(f"more than {MAX_REDIRECTS} redirects", url=self.name)

    def get_json(self, url: str) -> object:
        """The JSON at an address.

        Raises `DownloadError` if the server refuses, or answers with something else or too much.
        """
        import json

        try:
            response = self.get(url, {"accept": "application/json"})
            if response.status != 200:
                raise self.refusal(response)
            data = bytearray()
            while part := self.read(response, READ_AT_ONCE):
                data += part
                if len(data) > MAX_JSON:
                    raise DownloadError("the server's list is too long", url=self.name)
        except BrokenError as error:
            raise DownloadError(str(error), url=self.name) from None
        try:
            return json.loads(data)
        except (ValueError, RecursionError):  # ValueError: also a number of thousands of digits
            raise DownloadError("the server's answer is not JSON", url=self.name) from None

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
        raise DownloadError(f"{shown(url)!r} is not an http or https URL", url=self.name)

    def _followed(self, url: str, target: str) -> str:
        """The address that a server redirects to from another one."""
        host, problem = urlsplit(url).hostname, "no address"
        with suppress(ValueError):
            found = urljoin(url, target)
            if not url.startswith("https:") or urlsplit(found).scheme == "https":
                return found
            problem = "an address without https"
        raise DownloadError(f"{host} redirects to {problem}", url=self.name)

    def _check_reach(self, address: str) -> None:
        """Refuses a private address, unless the first one, which the user named, is private too."""
        if self._may_be_private is None:
            self._may_be_private = is_private(address)
        elif is_private(address) and not self._may_be_private:
            raise BrokenError(f"the server leads to {address}, which is a private address", is_unreachable=True)

    def _cut(self) -> None:
        """Ends all connections. Not by the method of a socket with TLS: that drops a state which may be in use."""
        while self._lines:
            with suppress(OSError), closing(self._lines.pop()) as line:
                line.shutdown(socket.SHUT_RDWR)

    def _watched(self, pool: Any, is_direct: bool) -> Any:
        """A kind of urllib3's pools that notes each connection, and refuses one that may not reach its address."""
        connect = pool.ConnectionCls._new_conn

        def noted(connection: Any) -> socket.socket:
            line: socket.socket = connect(connection)
            self._lines.append(line.dup())
            try:
                if is_direct:
                    self._check_reach(line.getpeername()[0])
            except BaseException:
                line.close()
                raise
            return line

        kind = type("Watched", (pool.ConnectionCls,), {"_new_conn": noted})
        return type("Watched", (pool,), {"ConnectionCls": kind})

    def _pool(self, parts: SplitResult) -> urllib3.PoolManager:
        from urllib.request import getproxies, proxy_bypass

        proxies = getproxies()
        proxy = proxies.get(parts.scheme) or proxies.get("all")
        if proxy and proxy_bypass(parts.hostname or ""):
            proxy = None
        if proxy:  # which makes the connections
            self._check_reach(parts.hostname or "")
        key = parts.scheme, proxy
        if key not in self._pools:
            options: dict[str, Any] = {"ssl_context": _context()} if parts.scheme == "https" else {}
            if proxy is None:
                pools = self._urllib3.PoolManager(**options)
            else:
                address = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
                if address.username is not None:
                    pair = f"{unquote(address.username)}:{unquote(address.password or '')}"
                    options["proxy_headers"] = self._urllib3.make_headers(proxy_basic_auth=pair)
                bare = urlunsplit(address._replace(netloc=address.netloc.rpartition("@")[2]))
                pools = self._urllib3.ProxyManager(bare, **options)
            kinds = pools.pool_classes_by_scheme.items()
            pools.pool_classes_by_scheme = {name: self._watched(kind, not proxy) for name, kind in kinds}
            self._pools[key] = pools
        return self._pools[key]

    def _reason(self, error: Exception) -> str:
        """What an error means, in a few words."""
        errors, said = self._urllib3.exceptions, str(error).rpartition(": ")[2]
        reasons = {
            errors.NameResolutionError: "no server has this name, or the network is down",
            errors.NewConnectionError: f"no connection ({said})",
            errors.ConnectTimeoutError: f"no connection within {CONNECT_SECONDS:g} s",
            (errors.TimeoutError, TimeoutError): f"no answer within {READ_SECONDS:g} s",
            errors.ProxyError: f"the proxy does not connect ({said})",
            errors.SSLError: f"no secure connection ({error})",
            (errors.ProtocolError, OSError): "the connection broke",
        }
        unknown = f"the answer is not proper HTTP ({error})"
        return next((reason for kinds, reason in reasons.items() if isinstance(error, kinds)), unknown)


def _close(late: Future[Any]) -> None:
    """Closes an answer that came too late: its headers may end where the connection was cut."""
    with suppress(Exception):
        late.result().close()


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

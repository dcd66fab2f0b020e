"""Both sides of a comparison of chats: llama-server in a child process, and ours as a program or as the package.

`serve` is the child: xllamacpp's server with a tiny model. It writes a line that says whether the server starts with
the template, then answers each line of a request with a line.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ggtok.lab.verify.child import Process, Watchdog

from .conversations import Json
from .paths import ROOT


class Program(Process):
    """A process that answers JSON lines. If it dies or hangs, it is replaced."""

    def __init__(self, command: list[str], greets: bool = False, timeout: float = 20.0) -> None:
        super().__init__(command, timeout, cwd=ROOT, env={**os.environ, "TZ": "UTC"})
        self.greets = greets
        self.greeting: Json = {}
        """The line that the process writes before the first answer, if it greets."""
        if greets:
            self._greeted()

    def ask(self, line: Json) -> Json:
        """Returns the answer, or `died` or `hung` with what is known about it."""
        if not self._running and (not self._greeted() if self.greets else not self.start()):
            return self.greeting
        assert self._running is not None
        assert self._running.stdin is not None
        with suppress(BrokenPipeError):
            self._running.stdin.write(json.dumps(line).encode() + b"\n")
            self._running.stdin.flush()
        return self._read()

    def _greeted(self) -> bool:
        """Whether a fresh process greets as it should."""
        self.start()
        self.greeting = self._read()
        if "started" not in self.greeting:
            self.close()
        return "started" in self.greeting

    def _read(self) -> Json:
        """Reads a line."""
        process = self._running
        assert process is not None
        assert process.stdout is not None
        watchdog = Watchdog(process, self.timeout)
        line = process.stdout.readline()
        watchdog.end()
        if line.endswith(b"\n"):
            answer: Json = json.loads(line)
            return answer
        status = process.wait()
        answer = {"hung": self.timeout} if watchdog.has_bitten else {"died": f"status {status}: {self.last_words()}"}
        self.close()
        return answer


def serve(model: str, template: str) -> None:
    """Answers requests with llama-server, line by line. Runs in a separate process."""
    import xllamacpp  # type: ignore[import-untyped]

    # Keeps standard output for the answers, and the server's log where this process can read it.
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    params = xllamacpp.CommonParams()
    params.model.path, params.chat_template, params.use_jinja = model, Path(template).read_bytes().decode(), True
    params.n_ctx, params.n_parallel, params.warmup, params.verbosity, params.port = 512, 1, False, 1, 0
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        with open("/dev/stderr", encoding="utf-8", errors="replace") as log:
            found = re.search(r"chat template parsing error: (.*?)(?:\n[\d.]+ E srv|\Z)", log.read(), re.DOTALL)
        print(json.dumps({"refused": found[1] if found else str(error)}), file=output, flush=True)
        return

    def post(path: str, body: str | None) -> Json:
        request = urllib.request.Request(f"{server.listening_address}{path}", body.encode() if body else None)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request) as response:
                answer: Json = json.load(response)
                return answer
        except urllib.error.HTTPError as error:
            told = json.loads(error.read())["error"]
            return {"error": told["message"], "code": error.code}

    properties = post("/props", None)
    started = {"started": True, "caps": properties["chat_template_caps"]}
    started |= {"bos": properties["bos_token"], "eos": properties["eos_token"]}
    print(json.dumps(started), file=output, flush=True)
    for line in sys.stdin:
        print(json.dumps(post("/apply-template", line)), file=output, flush=True)


@dataclass
class Template:
    """A template with what the server says about it."""

    name: str
    text: str
    greeting: Json = field(default_factory=dict)
    """`started`, `caps` (what the server believes that the template can do), `bos`, `eos`; or `refused`."""
    add_bos: bool = False


@dataclass
class Case:
    """A request and both answers."""

    template: Template
    index: int
    body: Json
    now: int
    """Seconds since 1970."""
    theirs: Json
    ours: Json = field(default_factory=dict)


class Ours:
    """Our side: the package that is installed, in this process."""

    def __init__(self) -> None:
        self._compiled: tuple[str, Any] = ("", None)
        """The template that was asked last. Requests for a template come one after the other."""

    def ask(self, template: Template, body: Any, now: int) -> Json:
        """Returns our answer."""
        from ggtok import GgtokError, _ggtok

        body = json.loads(json.dumps(body))  # as the server gets it: a pair of surrogates is one character
        try:
            if self._compiled[0] != template.text:
                self._compiled = (template.text, _ggtok.ChatTemplate(template.text, template.name))
            rendering = self._compiled[1].render(body, **special(template), closes=False, now=(now, 0, "UTC"))
            return {"prompt": rendering.data.decode("utf-8", "replace")}
        except (GgtokError, TypeError) as error:
            return {"error": str(error)}


class OurProgram(Ours):
    """Our side: a program that answers lines."""

    def __init__(self, command: str, timeout: float) -> None:
        super().__init__()
        self.program = Program(shlex.split(command), timeout=timeout)

    def ask(self, template: Template, body: Any, now: int) -> Json:
        """Returns our answer."""
        line = {"template": template.text, **special(template), "add_bos": template.add_bos, "add_eos": False}
        return self.program.ask(line | {"body": body, "now": now})


def special(template: Template) -> dict[str, str]:
    """The texts of BOS and EOS."""
    return {"bos": template.greeting.get("bos", "<s>"), "eos": template.greeting.get("eos", "</s>")}

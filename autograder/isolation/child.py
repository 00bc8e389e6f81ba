"""The student's process: takes the cells and calls from the judge, runs them, sends what came out.

Nothing here is trusted by the judge. Once a cell has run, any of it may have been replaced.
"""

import ast
import io
import os
import sys
import threading
import types
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO

from autograder.faults import describe, in_cell, remember_source
from autograder.isolation import frames
from autograder.isolation.limits import Limits
from autograder.isolation.remote_machine import RemoteMachine
from autograder.values import NotPlain, pack, unpack

Answer = tuple[dict[str, Any], bytes]


class Judge:
    """The judge's process, seen from here: two pipes."""

    def __init__(self, requests: BinaryIO, replies: BinaryIO):
        self._requests = requests
        self._replies = replies
        self._turn = threading.RLock()  # a kernel's threads may load at the same time

    def hear(self) -> tuple[dict[str, Any], bytes]:
        """Wait for the next message. Raises EOFError when the judge has gone."""
        header, body = frames.LENGTHS.unpack(self._exactly(frames.LENGTHS.size))
        return frames.header_of(self._exactly(header)), self._exactly(body)

    def tell(self, header: dict[str, Any], body: bytes = b"") -> None:
        """Send a message."""
        self.send(frames.to_bytes(header, body))

    def send(self, frame: bytes) -> None:
        """Send a message that is already a frame."""
        with self._turn:
            self._replies.write(frame)
            self._replies.flush()

    def ask(self, header: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Send a message and wait for the answer."""
        with self._turn:
            self.tell(header)
            return self.hear()

    def _exactly(self, size: int) -> bytes:
        data = self._requests.read(size)
        if len(data) < size:
            raise EOFError
        return data


class LastWords(io.FileIO):
    """A file that keeps the last of what is written to it: full, it starts again from its top.

    Args:
        descriptor: of the file, which is left open.
        limit: bytes it may hold.
    """

    def __init__(self, descriptor: int, limit: int):
        super().__init__(descriptor, "w", closefd=False)
        self._limit = limit

    def write(self, data: Any) -> int:
        """Write the last of `data` that fits, and say that all of it was written."""
        kept = memoryview(data).cast("B")[-self._limit :]
        if os.lseek(self.fileno(), 0, os.SEEK_CUR) + len(kept) > self._limit:
            os.ftruncate(self.fileno(), 0)
            os.lseek(self.fileno(), 0, os.SEEK_SET)
        super().write(kept)
        return len(data)


def _keep_last_words(limit: int) -> None:
    """However much a right kernel prints, it does not fail for it."""
    for name in ("stdout", "stderr"):
        descriptor = getattr(sys, name).fileno()
        kept = LastWords(descriptor, limit)
        setattr(sys, name, io.TextIOWrapper(kept, "utf-8", "backslashreplace", write_through=True))


def main(requests: int, replies: int) -> None:
    """Serve the judge over two file descriptors until it closes them."""
    judge = Judge(os.fdopen(requests, "rb"), os.fdopen(replies, "wb"))
    setup, _ = judge.hear()
    limits = Limits(**setup["limits"])
    limits.apply(setup["processes"])
    _keep_last_words(limits.output)
    judge.tell({"op": "started"})
    student = types.ModuleType("__main__")
    sys.modules["__main__"] = student  # where a notebook's cells live, too
    _guarded(judge, lambda: _run_cells(setup, vars(student)))
    while True:
        try:
            request, body = judge.hear()
        except EOFError:
            os._exit(0)
        _guarded(judge, lambda r=request, b=body: _serve(judge, vars(student)[setup["name"]], r, b))


def _guarded(judge: Judge, work: Callable[[], Answer]) -> None:
    """Do the work and tell the judge how it ended; whatever the student raises is the answer."""
    try:
        frame = frames.to_bytes(*work())
    except NotImplementedError:
        frame = frames.to_bytes({"op": "not written"})
    except BaseException as error:
        frame = frames.to_bytes({"op": "raised", "text": describe(error, in_cell)})
    judge.send(frame)


def _run_cells(setup: dict[str, Any], names: dict[str, Any]) -> Answer:
    exec("from autograder.prelude import *", names)
    exec("from autograder.isolation.stand_ins import *", names)
    for filename, source, required in setup["cells"]:
        remember_source(filename, source)
        if required:
            exec(compile(source, filename, "exec"), names)
        else:
            _run_what_works(filename, source, names)
    if setup["name"] not in names:
        return {"op": "raised", "text": f"the cell does not define {setup['name']}"}, b""
    return {"op": "ready"}, b""


def _run_what_works(filename: str, source: str, names: dict[str, Any]) -> None:
    """Run a cell that the exercise can do without: a statement that raises is passed over."""
    for statement in ast.parse(source).body:
        with suppress(Exception):
            exec(compile(ast.Module([statement], []), filename, "exec"), names)


def _serve(judge: Judge, target: Any, request: dict, body: bytes) -> Answer:
    if request["op"] == "on_machine":
        _on_machine(judge, target, request, body)
        return {"op": "done"}, b""
    arguments, keywords = unpack(request["value"], body)
    value = target(*arguments, **keywords) if callable(target) else target
    if value is target and (value is None or value is Ellipsis):
        return {"op": "not written"}, b""
    try:
        tree, body = pack(value)
    except NotPlain as error:
        return {"op": "raised", "text": f"your function returned {error}"}, b""
    return {"op": "returned", "value": tree}, body


def _on_machine(judge: Judge, target: Any, request: dict, body: bytes) -> None:
    machine = RemoteMachine(request["sram_bytes"], judge.ask, judge.tell)
    arrays = [machine.proxy(*array) for array in request["arrays"]]
    target(machine, *arrays, **unpack(request["keywords"], body))
    machine.sram.settle()

"""The candidate of a graded submission: the student's function, in a process of its own."""

import math
import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from autograder.candidate import NotWritten, StudentFault
from autograder.faults import printable
from autograder.isolation import process_tree
from autograder.isolation.channel import Channel
from autograder.isolation.rooms import Rooms
from autograder.isolation.sandbox import Sandbox
from autograder.isolation.uninterrupted import uninterrupted
from autograder.values import NotPlain, pack, unpack, whole_numbers
from reference_numpy.machine import HbmArray, Machine, Region, SramOverflow

FLOAT64 = 8  # bytes
RETURNED_LIMIT = 16 << 20  # bytes of arrays that a call may return,
RETURNED_PER_BYTE = 8  # and so many more for each byte that it was given


@dataclass(frozen=True)
class Cell:
    """Python source to run in the child.

    Attributes:
        label: what a message calls it, such as "your cell" or "helper cell 2".
        source: its text, already known to be Python.
        required: False if the exercise goes on when this cell raises.
    """

    label: str
    source: str
    required: bool = True


class Isolated:
    """A student's function in a child process, for one exercise. A context manager.

    Args:
        cells: what to run, in order, after the prelude.
        name: what the cells must define.
        sandbox: how the child is started and what it may use.

    Entering raises NotWritten or StudentFault when the cells do.
    """

    def __init__(self, cells: Sequence[Cell], name: str, sandbox: Sandbox | None = None):
        self._cells = cells
        self._name = name
        self._sandbox = sandbox or Sandbox()
        self._seconds = self._sandbox.limits.seconds
        self._ends = ExitStack()

    def __enter__(self) -> "Isolated":
        try:
            with uninterrupted():
                self._start()
            self._run_cells()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        """End the child and all it started, and clear its rooms away."""
        with uninterrupted():
            self._ends.close()

    def on_machine(
        self, machine: Machine, arrays: Sequence[HbmArray], keywords: dict[str, Any]
    ) -> None:
        """Run the kernel, serving its loads and stores. Raises NotWritten or StudentFault."""
        tree, body = pack(keywords)
        request = {"op": "on_machine", "sram_bytes": machine.sram.capacity, "keywords": tree}
        request["arrays"] = [(a.name, a.shape, a.dtype.name) for a in arrays]
        self._ask(request, body)
        hbm = _Hbm(machine, arrays, self._channel)
        largest_tile = (
            max((math.prod(a.shape) for a in arrays), default=0) * np.dtype(np.float64).itemsize
        )
        while True:
            reply, body = self._hear(largest_tile)
            if reply.get("op") == "done":
                return
            hbm.serve(reply, body)

    def call(self, *arguments: Any, **keywords: Any) -> Any:
        """Return `f(*arguments, **keywords)`, or the value handed in.

        Raises NotWritten or StudentFault.
        """
        tree, body = pack((arguments, keywords))
        self._ask({"op": "call", "value": tree}, body)
        reply, body = self._hear(RETURNED_LIMIT + RETURNED_PER_BYTE * len(body))
        try:
            return unpack(reply["value"], body)
        except KeyError:
            raise StudentFault("the code asked for tiles where none are", fatal=True) from None
        except NotPlain as error:
            raise StudentFault(f"the code sent the grader {error}", fatal=True) from None

    def printed(self) -> str:
        """The last lines that the code printed."""
        self._output.seek(max(0, self._output.seek(0, os.SEEK_END) - 2000))
        return printable(self._output.read().decode(errors="replace")).strip()

    def _start(self) -> None:
        rooms = Rooms.open()
        self._ends.callback(rooms.close)
        self._output = self._ends.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        child_reads, requests = os.pipe()
        replies, child_writes = os.pipe()
        for pipe in (requests, replies):
            self._ends.callback(os.close, pipe)
        pipes = (child_reads, child_writes)
        try:
            run = self._sandbox.start(rooms, pipes, self._output)
        finally:
            for end in pipes:
                os.close(end)
        self._ends.callback(process_tree.end, run)
        self._channel = Channel(run, replies, requests)

    def _run_cells(self) -> None:
        limits = self._sandbox.limits
        cells = [(f"<{cell.label}>", cell.source, cell.required) for cell in self._cells]
        self._channel.allow(limits.start_seconds, "Python did not start in time")
        setup = {"name": self._name, "limits": asdict(limits), "cells": cells}
        self._channel.send(setup | {"processes": self._sandbox.wall.processes})
        self._channel.receive()
        self._channel.allow(self._seconds, self._too_late())
        self._hear()

    def _ask(self, request: dict[str, Any], body: bytes) -> None:
        # The clock runs only while the judge waits for the student.
        self._channel.allow(self._seconds, self._too_late())
        self._channel.expect_silence()
        self._channel.send(request, body)

    def _hear(self, most: int = 0) -> tuple[dict[str, Any], bytes]:
        """The next reply, unless it says that the code raised or is not written.

        Its body has at most `most` bytes: a forged one must not fill the judge's memory.
        """
        reply, body = self._channel.receive(most)
        self._seconds = self._channel.remaining()
        if reply.get("op") == "not written":
            raise NotWritten
        if reply.get("op") == "raised":
            raise StudentFault(printable(str(reply.get("text"))))
        return reply, body

    def _too_late(self) -> str:
        return f"the code ran longer than {self._sandbox.limits.seconds:g} s and was ended"


class _Hbm:
    """Serves a child's loads and stores from the real machine, which meters them."""

    def __init__(self, machine: Machine, arrays: Sequence[HbmArray], channel: Channel):
        self._machine = machine
        self._arrays = {array.name: array for array in arrays}
        self._channel = channel

    def serve(self, request: dict[str, Any], body: bytes) -> None:
        """Do what one message asks. Raises a fatal StudentFault unless it is in order."""
        try:
            array = self._arrays[request["array"]]
            region = _region(request["bounds"], array)
            if request["op"] == "load":
                self._load(array, region)
            elif request["op"] == "store":
                self._machine.store(array, region, _tile(request["dtype"], region, body))
            else:
                raise NotPlain(request["op"])
        except (NotPlain, KeyError, TypeError):
            raise StudentFault(
                "the code asked the grader for something that no tile is", fatal=True
            ) from None

    def _load(self, array: HbmArray, region: Region) -> None:
        try:
            tile = self._machine.load(array, region)
        except SramOverflow as overflow:
            self._channel.send({"refused": str(overflow)})
        else:
            self._channel.send({}, tile.tobytes())


def _region(bounds: Any, array: HbmArray) -> Region:
    if not isinstance(bounds, list) or len(bounds) != array.ndim:
        raise NotPlain("bounds that are not one pair an axis")
    pairs = [whole_numbers(pair) for pair in bounds]
    for pair, length in zip(pairs, array.shape, strict=True):
        if len(pair) != 2 or not pair[0] <= pair[1] <= length:
            raise NotPlain(f"bounds outside {array.name}")
    return Region(tuple(pairs))


def _tile(dtype: Any, region: Region, body: bytes) -> np.ndarray:
    if dtype not in ("float32", "float64"):
        raise NotPlain("a tile of another dtype")
    if len(body) != region.size * np.dtype(dtype).itemsize:
        raise NotPlain("a tile of another size")
    return np.frombuffer(body, dtype).reshape(region.shape)

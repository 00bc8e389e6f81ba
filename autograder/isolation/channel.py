"""The judge's end of the channel: every wait has a deadline, every size a limit."""

import os
import select
import time
from signal import Signals
from typing import Any, NoReturn

from autograder.candidate import StudentFault
from autograder.isolation import frames
from autograder.isolation.process_tree import Run

CHUNK = 1 << 16
LISTEN = 0.05  # seconds between looks at whether the child still lives
GRACE = 0.5  # seconds for a child that closed its pipe to finish dying


class Channel:
    """Two pipes to a child that may do anything with its ends of them.

    Args:
        run: the child.
        replies: file descriptor that the child's messages are read from.
        requests: file descriptor that ours are written to.
    """

    def __init__(self, run: Run, replies: int, requests: int):
        self._run = run
        self._replies = replies
        self._requests = requests
        self._deadline = 0.0
        self._too_late = ""
        for pipe in (replies, requests):
            os.set_blocking(pipe, False)

    def allow(self, seconds: float, too_late: str) -> None:
        """From now on the child has `seconds`; after that `too_late` is the verdict."""
        self._deadline = time.monotonic() + seconds
        self._too_late = too_late

    def remaining(self) -> float:
        """Seconds that are left of what was allowed."""
        return max(0.0, self._deadline - time.monotonic())

    def expect_silence(self) -> None:
        """Raise a fatal StudentFault if the child has sent something that nobody asked for."""
        if self._ready(self._replies, select.POLLIN, 0):
            raise StudentFault(
                "the code wrote to the grader's channel unasked (did it fork?)", fatal=True
            )

    def send(self, header: dict[str, Any], body: bytes = b"") -> None:
        """Send one message. Raises a fatal StudentFault if the child does not take it."""
        data = memoryview(frames.to_bytes(header, body))
        while data:
            self._wait(self._requests, select.POLLOUT)
            try:
                data = data[os.write(self._requests, data[:CHUNK]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                self._ended()

    def receive(self, most: int = 0) -> tuple[dict[str, Any], bytes]:
        """The next message, whose body has at most `most` bytes.

        Raises a fatal StudentFault for garbage, silence or a dead child.
        """
        header, body = frames.LENGTHS.unpack(self._exactly(frames.LENGTHS.size))
        try:
            frames.check_sizes(header, body, frames.REPLY_HEADER_LIMIT, most)
            return frames.header_of(self._exactly(header)), self._exactly(body)
        except frames.BadFrame as error:
            raise StudentFault(f"the code sent the grader {error}", fatal=True) from None

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            self._wait(self._replies, select.POLLIN)
            piece = os.read(self._replies, min(CHUNK, size - len(data)))
            if not piece:
                self._ended()
            data += piece
        return bytes(data)

    def _wait(self, pipe: int, event: int) -> None:
        while True:
            # Looked at even when there is data: a child may ask for tiles for ever.
            if self.remaining() == 0:
                raise StudentFault(self._too_late, fatal=True)
            if self._ready(pipe, event, LISTEN):
                return
            # A fork of the child may hold the pipe open, so its death is watched by itself.
            if self._run.process.poll() is not None and not self._ready(pipe, event, 0):
                self._ended()

    def _ready(self, pipe: int, event: int, seconds: float) -> bool:
        poll = select.poll()
        poll.register(pipe, event)
        return bool(poll.poll(1000 * min(seconds, self.remaining())))

    def _ended(self) -> NoReturn:
        status = _exit_status(self._run, min(GRACE, self.remaining()))
        raise StudentFault(_epitaph(status), fatal=True)


def _exit_status(run: Run, seconds: float) -> int | None:
    limit = time.monotonic() + seconds
    while run.process.poll() is None and time.monotonic() < limit:
        time.sleep(0.01)
    return run.process.poll()


def _epitaph(status: int | None) -> str:
    if status is None:
        return "the code closed the grader's channel"
    if 128 < status <= 128 + max(Signals):  # so a wall tells of a signal, as a shell does
        status = 128 - status
    if status >= 0:
        return f"the code ended its own process (exit status {status}) instead of returning"
    name = Signals(-status).name if -status in set(Signals) else f"signal {-status}"
    return f"the process was ended by {name} while the code ran"

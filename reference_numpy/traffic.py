"""The meter: bytes that crossed between HBM and the chip, for each array and direction."""

from dataclasses import dataclass, field
from html import escape


@dataclass
class Bytes:
    """Bytes of one array: `read` from HBM, `written` to it."""

    read: int = 0
    written: int = 0

    @property
    def total(self) -> int:
        """Read plus written."""
        return self.read + self.written


@dataclass
class Traffic:
    """Bytes per array; `traffic["Q"].read`, `traffic.total`."""

    arrays: dict[str, Bytes] = field(default_factory=dict)

    def add(self, name: str) -> None:
        """Start metering an array."""
        self.arrays[name] = Bytes()

    def read(self, name: str, nbytes: int) -> None:
        """Count bytes loaded from HBM."""
        self.arrays[name].read += nbytes

    def write(self, name: str, nbytes: int) -> None:
        """Count bytes stored to HBM."""
        self.arrays[name].written += nbytes

    def __getitem__(self, name: str) -> Bytes:
        return self.arrays[name]

    @property
    def total_read(self) -> int:
        """Bytes read from HBM over all arrays."""
        return sum(b.read for b in self.arrays.values())

    @property
    def total_written(self) -> int:
        """Bytes written to HBM over all arrays."""
        return sum(b.written for b in self.arrays.values())

    @property
    def total(self) -> int:
        """Bytes moved in either direction."""
        return self.total_read + self.total_written

    def _rows(self) -> list[tuple[str, int, int]]:
        rows = [(name, b.read, b.written) for name, b in self.arrays.items() if b.total]
        return [*rows, ("all", self.total_read, self.total_written)]

    def __repr__(self) -> str:
        lines = [f"{'array':<8}{'read (bytes)':>16}{'written (bytes)':>18}"]
        lines += [f"{name:<8}{read:>16,}{written:>18,}" for name, read, written in self._rows()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        cell = "<td style='text-align:right'>"
        body = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"{cell}{read:,}</td>{cell}{written:,}</td></tr>"
            for name, read, written in self._rows()
        )
        head = "<tr><th>array</th><th>read (bytes)</th><th>written (bytes)</th></tr>"
        return f"<table><caption>HBM traffic</caption>{head}{body}</table>"

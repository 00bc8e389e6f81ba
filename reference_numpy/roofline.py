"""The roofline: a kernel takes at least FLOPs/peak and at least bytes/bandwidth.

Williams, Waterman and Patterson (2009). The figures of each device are its vendor's data sheet:
dense fp16/bf16 tensor-core rate, HBM bandwidth, SMs, shared memory plus L1 of one SM, and the
clock at which the rate is stated.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """One GPU: rates in FLOP/s and bytes/s, sizes in bytes, the clock in Hz."""

    name: str
    peak_flops: float
    hbm_bytes_per_s: float
    hbm_bytes: float
    sms: int
    sram_bytes_per_sm: int
    l2_bytes: int
    clock_hz: float

    @property
    def ridge(self) -> float:
        """FLOPs a byte from which on arithmetic, not memory, is the limit."""
        return self.peak_flops / self.hbm_bytes_per_s

    @property
    def sram_bytes(self) -> int:
        """On-chip memory of all SMs together."""
        return self.sms * self.sram_bytes_per_sm

    @property
    def sram_bytes_per_s(self) -> float:
        """Bandwidth of shared memory, all SMs together: 32 banks of 4 bytes a clock in each."""
        return self.sms * 32 * 4 * self.clock_hz


KB, MB, GB, TERA, GHZ = 1024, 1024**2, 1e9, 1e12, 1e9

DEVICES = {
    device.name: device
    for device in (
        Device("A100 40GB", 312 * TERA, 1.555 * TERA, 40 * GB, 108, 192 * KB, 40 * MB, 1.41 * GHZ),
        Device("A100 80GB", 312 * TERA, 2.039 * TERA, 80 * GB, 108, 192 * KB, 40 * MB, 1.41 * GHZ),
        Device("H100", 989 * TERA, 3.35 * TERA, 80 * GB, 132, 256 * KB, 50 * MB, 1.83 * GHZ),
        Device("H200", 989 * TERA, 4.8 * TERA, 141 * GB, 132, 256 * KB, 50 * MB, 1.83 * GHZ),
        Device("B200", 2250 * TERA, 8.0 * TERA, 180 * GB, 148, 256 * KB, 126 * MB, 1.85 * GHZ),
    )
}


def intensity(flops: float, nbytes: float) -> float:
    """Arithmetic intensity in FLOPs a byte of HBM traffic."""
    return flops / nbytes


def least_time(flops: float, nbytes: float, device: Device) -> float:
    """Seconds that `device` needs at least: max(FLOPs/peak, bytes/bandwidth)."""
    return max(flops / device.peak_flops, nbytes / device.hbm_bytes_per_s)


def attainable(flops_per_byte: float, device: Device) -> float:
    """FLOP/s that a kernel of this intensity can reach at most."""
    return min(device.peak_flops, flops_per_byte * device.hbm_bytes_per_s)


def is_memory_bound(flops: float, nbytes: float, device: Device) -> bool:
    """Whether moving the bytes takes longer than the arithmetic."""
    return intensity(flops, nbytes) < device.ridge

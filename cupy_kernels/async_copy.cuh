// cp.async (sm_80 and later): 16 bytes from HBM to shared memory past the registers, while the
// thread goes on. Copies are gathered into groups, and a thread waits for its own groups only: a
// barrier must follow before it may read what other threads copied.
#pragma once

// Start copying 16 bytes; with `exists` false nothing is read and 16 zero bytes are written. Rows
// behind the end of an array thus become zeros: 0 · garbage could be NaN, 0 · 0 never is.
__device__ __forceinline__ void cp_async_16(uint32_t to_shared, const void* from, bool exists) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(to_shared), "l"(from), "r"(exists ? 16 : 0));
}

// Close the group of all copies started since the last call.
__device__ __forceinline__ void cp_async_commit() {
    asm volatile("cp.async.commit_group;");
}

// Wait until at most the `newest` latest groups are still under way.
template <int newest>
__device__ __forceinline__ void cp_async_wait() {
    asm volatile("cp.async.wait_group %0;" :: "n"(newest) : "memory");
}

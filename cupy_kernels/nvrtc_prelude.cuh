// What NVRTC lacks and CUDA C++ code takes for granted. Every compilation pre-includes this file, so
// a kernel needs no line of its own for it and its line numbers stay those the student sees.
#pragma once

// NVRTC has no <cstdint>: the widths below hold on every CUDA target.
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;

// Nor <cmath> and <cfloat>. Built from bit patterns, because a literal that overflows is a warning.
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
#ifndef FLT_MAX
#define FLT_MAX 3.402823466e+38f
#endif
#ifndef FLT_MIN
#define FLT_MIN 1.175494351e-38f
#endif

// Nor can it include <cuda.h>. A TMA tensor map is 128 opaque bytes; the hardware wants it 64-byte
// aligned and reads it through its address, so a kernel takes it as `const __grid_constant__`.
struct alignas(64) CUtensorMap {
    uint64_t opaque[16];
};

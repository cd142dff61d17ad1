// What every file that is compiled once for each SIMD path starts from.
//
// CMake compiles the kernels of each part (kernels.cpp) once for each path, with GL_PATH (the path's name, used as a
// namespace), GL_LANES (floats in a register) and the path's instructions. Nothing in such files may call an inline
// function of the standard library: the linker keeps one copy of those, and it might be the copy that was compiled for
// a newer processor than this one.
#pragma once

#if !defined(GL_PATH) || !defined(GL_LANES)
#error "only for files that are compiled once for each SIMD path"
#endif

#define GL_INLINE inline __attribute__((always_inline))
#define GL_BYTES (4 * GL_LANES)

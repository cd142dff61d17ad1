// The exported functions for the library as a whole: version, SIMD paths, threads, memory.
#include "gatelight.h"
#include "runtime/memory.h"
#include "runtime/paths.h"
#include "runtime/pool.h"

using namespace gatelight;

int32_t gl_abi_version(void) { return GL_ABI_VERSION; }
const char* gl_simd_available(void) { return path_names(); }
const char* gl_simd(void) { return path().name; }
int32_t gl_simd_select(const char* name) { return name && select_path(name) ? GL_OK : GL_BAD_ARGUMENT; }
void gl_set_threads(int32_t threads) { set_threads(threads); }
int32_t gl_get_threads(void) { return get_threads(); }
void gl_stop_threads(void) { stop_threads(); }
void* gl_acquire(int64_t bytes) { return bytes < 0 ? nullptr : acquire(static_cast<size_t>(bytes)); }
void gl_release(void* block) { release(block); }

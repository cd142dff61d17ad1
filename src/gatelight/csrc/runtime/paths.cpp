#include "runtime/paths.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace gatelight {
namespace {

#define GL_KERNELS_OF(name) \
  { #name, name::parameter_kernels, name::dense_kernels, name::conv_kernels, name::interpreter }
const Path base_path = GL_KERNELS_OF(base);
#if defined(GL_HAVE_X86)
const Path avx2_path = GL_KERNELS_OF(avx2);
const Path avx512_path = GL_KERNELS_OF(avx512);
#endif

std::vector<const Path*> find() {
  std::vector<const Path*> found;
#if defined(GL_HAVE_X86)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw"))
    found.push_back(&avx512_path);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back(&avx2_path);
#endif
  found.push_back(&base_path);
  return found;
}

const std::vector<const Path*>& paths() {
  static const std::vector<const Path*>& found = *new std::vector<const Path*>(find());
  return found;
}

std::atomic<const Path*>& chosen() {
  static std::atomic<const Path*> path{[] {
    const char* name = std::getenv("GATELIGHT_SIMD");
    const Path* wished = name ? find_path(name) : nullptr;
    return wished ? wished : paths().front();
  }()};
  return path;
}

}  // namespace

const Path& path() { return *chosen(); }

bool select_path(const char* name) {
  const Path* found = find_path(name);
  if (found) chosen() = found;
  return found != nullptr;
}

const Path* find_path(const char* name) {
  for (const Path* path : paths())
    if (!std::strcmp(path->name, name)) return path;
  return nullptr;
}

const char* path_names() {
  static const std::string& names = *new std::string([] {
    std::string all;
    for (const Path* path : paths()) all += (all.empty() ? "" : " ") + std::string(path->name);
    return all;
  }());
  return names.c_str();
}

}  // namespace gatelight

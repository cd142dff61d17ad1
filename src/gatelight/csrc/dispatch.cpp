#include "dispatch.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace gatelight {
namespace {

std::vector<const Kernels*> find() {
  std::vector<const Kernels*> found;
#if defined(GL_HAVE_X86)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw"))
    found.push_back(&kernels_avx512);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back(&kernels_avx2);
#endif
  found.push_back(&kernels_base);
  return found;
}

const std::vector<const Kernels*>& paths() {
  static const std::vector<const Kernels*>& found = *new std::vector<const Kernels*>(find());
  return found;
}

const Kernels* named(const char* name) {
  for (const Kernels* k : paths())
    if (!std::strcmp(k->name, name)) return k;
  return nullptr;
}

std::atomic<const Kernels*>& chosen() {
  static std::atomic<const Kernels*> kernels{[] {
    const char* name = std::getenv("GATELIGHT_SIMD");
    const Kernels* wished = name ? named(name) : nullptr;
    return wished ? wished : paths().front();
  }()};
  return kernels;
}

}  // namespace

const Kernels& kernels() { return *chosen(); }

bool select(const char* name) {
  const Kernels* k = named(name);
  if (k) chosen() = k;
  return k != nullptr;
}

const char* available() {
  static const std::string& names = *new std::string([] {
    std::string all;
    for (const Kernels* k : paths()) all += (all.empty() ? "" : " ") + std::string(k->name);
    return all;
  }());
  return names.c_str();
}

}  // namespace gatelight

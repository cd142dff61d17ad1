#include "runtime/memory.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#if defined(_WIN32)
#include <malloc.h>
#else
#include <pthread.h>
#include <sys/mman.h>
#endif

namespace gatelight {
namespace {

constexpr size_t HUGE_PAGE = size_t(2) << 20;
constexpr size_t LARGE = HUGE_PAGE / 4;  // blocks from this size on get huge pages: rows are read in any order
constexpr size_t MOST_FREE_BLOCKS = 24;

struct Entry {
  void* data;
  size_t bytes;
};

std::mutex lock;
// Never destroyed: blocks may come back while the process shuts down.
std::vector<Entry>& used = *new std::vector<Entry>;
std::vector<Entry>& unused = *new std::vector<Entry>;  // oldest first

#if !defined(_WIN32)
// A child of fork must not inherit a lock that another thread held.
const int registered = pthread_atfork([] { lock.lock(); }, [] { lock.unlock(); }, [] { lock.unlock(); });
#endif

void* allocate(size_t bytes) {
  const size_t align = bytes >= LARGE ? HUGE_PAGE : 64;
#if defined(_WIN32)
  return _aligned_malloc(bytes, align);
#else
  void* p = nullptr;
  if (posix_memalign(&p, align, bytes)) return nullptr;
#if defined(MADV_HUGEPAGE)
  if (bytes >= LARGE) madvise(p, bytes, MADV_HUGEPAGE);
#endif
  return p;
#endif
}

void deallocate(void* p) {
#if defined(_WIN32)
  _aligned_free(p);
#else
  std::free(p);
#endif
}

}  // namespace

void* acquire(size_t bytes) noexcept try {
  const size_t unit = bytes >= LARGE ? HUGE_PAGE : 4096;
  bytes = std::max<size_t>(1, (bytes + unit - 1) / unit) * unit;
  std::lock_guard<std::mutex> hold(lock);
  used.reserve(used.size() + 1);
  auto best = unused.end();  // the smallest that fits, of those the latest, which may still be in the cache
  for (auto it = unused.begin(); it != unused.end(); ++it)
    if (it->bytes >= bytes && it->bytes <= bytes + bytes / 8 && (best == unused.end() || it->bytes <= best->bytes))
      best = it;
  if (best != unused.end()) {
    used.push_back(*best);
    unused.erase(best);
  } else {
    void* fresh = allocate(bytes);
    if (!fresh) return nullptr;
    used.push_back({fresh, bytes});
  }
  return used.back().data;
} catch (const std::bad_alloc&) {
  return nullptr;
}

void release(void* block) noexcept {
  if (!block) return;
  std::lock_guard<std::mutex> hold(lock);
  const auto it = std::find_if(used.begin(), used.end(), [&](const Entry& e) { return e.data == block; });
  if (it == used.end()) return;
  if (unused.size() == MOST_FREE_BLOCKS) {
    deallocate(unused.front().data);
    unused.erase(unused.begin());
  }
  try {
    unused.push_back(*it);
  } catch (const std::bad_alloc&) {
    deallocate(block);
  }
  used.erase(it);
}

}  // namespace gatelight

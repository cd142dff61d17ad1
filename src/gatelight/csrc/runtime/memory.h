// Large blocks of memory that are kept and reused: a fresh page costs more than filling it.
#pragma once

#include <cstddef>

namespace gatelight {

// A block of at least `bytes`, aligned to a cache line (large ones to 2 MiB, for huge pages); null if there is none.
void* acquire(size_t bytes) noexcept;
void release(void* block) noexcept;

struct Block {
  void* data = nullptr;
  Block() = default;
  explicit Block(size_t bytes) : data(acquire(bytes)) {}
  Block(Block&& other) noexcept : data(other.data) { other.data = nullptr; }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { release(data); }
  float* floats() const { return static_cast<float*>(data); }
};

}  // namespace gatelight

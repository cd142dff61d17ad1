// Batches of images, prepared for the gates: boxes resampled to the full size, and thermometer encoding. The same
// bits as data/augment.py and nn/encode.py compute with torch; built without fused multiply-adds for that.
// Single-threaded: a training step prepares the next batch while the gates of this one are computed.
#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "gatelight.h"

namespace {

// For each output pixel the two input pixels it lies between and how far along.
struct Axis {
  std::vector<int32_t> low, high;
  std::vector<float> share;

  explicit Axis(int64_t full) : low(full), high(full), share(full) {}

  void place(int64_t start, int64_t size, bool mirrored) {
    const int64_t full = static_cast<int64_t>(low.size());
    const float step = static_cast<float>(size) / static_cast<float>(full);
    for (int64_t i = 0; i < full; i++) {
      const float at = std::max((static_cast<float>(i) + 0.5f) * step - 0.5f, 0.0f);
      const int64_t below = static_cast<int64_t>(at), to = mirrored ? full - 1 - i : i;
      low[to] = static_cast<int32_t>(start + below);
      high[to] = static_cast<int32_t>(start + std::min(below + 1, size - 1));
      share[to] = at - static_cast<float>(below);
    }
  }
};

void to_unit(const float* from, int64_t count, float* to) { std::memcpy(to, from, static_cast<size_t>(4 * count)); }
void to_unit(const uint8_t* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; i++) to[i] = static_cast<float>(from[i]) / 255.0f;
}

template <class T>
void resample(const T* images, int64_t batch, int64_t channels, int64_t height, int64_t width, const int64_t* boxes,
              float* out) {
  const int64_t pixels = height * width;
  std::vector<float> plane(pixels), mixed(width);
  Axis rows(height), columns(width);
  for (int64_t b = 0; b < batch; b++, boxes += 5) {
    rows.place(boxes[0], boxes[2], false);
    columns.place(boxes[1], boxes[3], boxes[4] != 0);
    for (int64_t c = 0; c < channels; c++, images += pixels) {
      to_unit(images, pixels, plane.data());
      for (int64_t y = 0; y < height; y++, out += width) {
        const float* upper = &plane[rows.low[y] * width];
        const float* lower = &plane[rows.high[y] * width];
        const float down = rows.share[y];
        for (int64_t x = 0; x < width; x++) mixed[x] = (lower[x] - upper[x]) * down + upper[x];
        for (int64_t x = 0; x < width; x++) {
          const float left = mixed[columns.low[x]];
          out[x] = (mixed[columns.high[x]] - left) * columns.share[x] + left;
        }
      }
    }
  }
}

template <class T>
void encode(const T* x, int64_t batch, int64_t channels, int64_t pixels, const float* thresholds, int64_t count,
            int64_t stride, float* out) {
  constexpr int64_t RUN = 1024;
  float unit[RUN];
  for (int64_t plane = 0; plane < batch * channels; plane++, x += pixels, out += count * pixels) {
    const float* limits = thresholds + plane % channels * stride;
    for (int64_t first = 0; first < pixels; first += RUN) {
      const int64_t run = std::min(RUN, pixels - first);
      to_unit(x + first, run, unit);
      for (int64_t t = 0; t < count; t++) {
        const float limit = limits[t];
        float* to = out + t * pixels + first;
        for (int64_t i = 0; i < run; i++) to[i] = unit[i] > limit ? 1.0f : 0.0f;
      }
    }
  }
}

}  // namespace

int32_t gl_resample(const void* images, int32_t bytes, int64_t batch, int64_t channels, int64_t height, int64_t width,
                    const int64_t* boxes, float* out) try {
  if (batch < 0 || channels < 1 || height < 1 || width < 1 || height * width > INT32_MAX) return GL_BAD_ARGUMENT;
  for (int64_t b = 0; b < batch; b++) {
    const int64_t *box = boxes + 5 * b, full[2] = {height, width};
    for (int axis = 0; axis < 2; axis++)
      if (box[axis] < 0 || box[2 + axis] < 1 || box[axis] > full[axis] - box[2 + axis]) return GL_BAD_ARGUMENT;
  }
  if (bytes)
    resample(static_cast<const uint8_t*>(images), batch, channels, height, width, boxes, out);
  else
    resample(static_cast<const float*>(images), batch, channels, height, width, boxes, out);
  return GL_OK;
} catch (const std::bad_alloc&) {
  return GL_NO_MEMORY;
}

int32_t gl_thermometer(const void* x, int32_t bytes, int64_t batch, int64_t channels, int64_t pixels,
                       const float* thresholds, int64_t count, int64_t stride, float* out) {
  if (batch < 0 || channels < 1 || pixels < 1 || count < 1) return GL_BAD_ARGUMENT;
  if (bytes)
    encode(static_cast<const uint8_t*>(x), batch, channels, pixels, thresholds, count, stride, out);
  else
    encode(static_cast<const float*>(x), batch, channels, pixels, thresholds, count, stride, out);
  return GL_OK;
}

// Runs the native preparation of images on random shapes, in arrays without a byte to spare, against plain loops in
// double precision. Built under sanitizers by sanitize.sh; prints one line and returns 1 at the first difference.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "gatelight.h"

static double at(const std::vector<uint8_t>& x, int64_t plane, int64_t h, int64_t w, int64_t i, int64_t j) {
  return x[(plane * h + i) * w + j] / 255.0;
}

static double resampled(const std::vector<uint8_t>& x, int64_t plane, int64_t h, int64_t w, const int64_t* box, int64_t i,
                        int64_t j) {
  if (box[4]) j = w - 1 - j;
  const double y = std::max((i + 0.5) * box[2] / h - 0.5, 0.0), z = std::max((j + 0.5) * box[3] / w - 0.5, 0.0);
  const int64_t top = box[0] + (int64_t)y, left = box[1] + (int64_t)z;
  const int64_t down = std::min(top + 1, box[0] + box[2] - 1), right = std::min(left + 1, box[1] + box[3] - 1);
  const double v = y - std::floor(y), u = z - std::floor(z);
  return (1 - v) * ((1 - u) * at(x, plane, h, w, top, left) + u * at(x, plane, h, w, top, right)) +
         v * ((1 - u) * at(x, plane, h, w, down, left) + u * at(x, plane, h, w, down, right));
}

static bool run(int seed) {
  std::mt19937 random(seed);
  auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  const int64_t batch = pick(0, 4), channels = pick(1, 3), h = pick(1, 40), w = pick(1, 40), count = pick(1, 9);
  std::vector<uint8_t> x(batch * channels * h * w);
  for (uint8_t& v : x) v = static_cast<uint8_t>(pick(0, 255));
  std::vector<int64_t> boxes;
  for (int64_t b = 0; b < batch; b++) {
    const int64_t height = pick(1, h), width = pick(1, w);
    for (int64_t v : {pick(0, h - height), pick(0, w - width), height, width, pick(0, 1)}) boxes.push_back(v);
  }
  std::vector<float> out(x.size());
  if (gl_resample(x.data(), 1, batch, channels, h, w, boxes.data(), out.data())) return false;
  for (int64_t k = 0; k < (int64_t)x.size(); k++) {
    const int64_t plane = k / (h * w);
    const double expected = resampled(x, plane, h, w, &boxes[5 * (plane / channels)], k / w % h, k % w);
    if (std::abs(out[k] - expected) > 1e-5) return false;
  }
  const bool shared = pick(0, 1);
  std::vector<float> limits(shared ? count : count * channels), bits(count * out.size());
  for (float& t : limits) t = static_cast<float>(pick(0, 1000)) / 1000;
  if (gl_thermometer(out.data(), 0, batch, channels, h * w, limits.data(), count, shared ? 0 : count, bits.data()))
    return false;
  for (int64_t k = 0; k < (int64_t)bits.size(); k++) {
    const int64_t pixel = k % (h * w), t = k / (h * w) % count, plane = k / (h * w) / count;
    const float limit = limits[(shared ? 0 : plane % channels * count) + t];
    if (bits[k] != (out[plane * h * w + pixel] > limit ? 1.0f : 0.0f)) return false;
  }
  boxes.assign({0, 0, h, w + 1, 0});
  return gl_resample(x.data(), 1, 1, channels, h, w, boxes.data(), out.data()) == GL_BAD_ARGUMENT;
}

int main(int argc, char** argv) {
  const int cases = argc > 1 ? std::atoi(argv[1]) : 20;
  for (int seed = 0; seed < cases; seed++)
    if (!run(seed)) {
      std::printf("images, seed %d: wrong\n", seed);
      return 1;
    }
  std::printf("%d batches of images passed\n", cases);
  return 0;
}

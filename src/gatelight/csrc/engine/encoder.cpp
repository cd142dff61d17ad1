#include "engine/encoder.h"

#include <algorithm>
#include <limits>

namespace gatelight {
namespace {

// A window of 64 features with fewer bits than this costs more than fetching its features one by one.
constexpr int64_t FEWEST_BITS = 8;

Encode empty_word(int64_t first, bool gathered) {
  Encode word{};
  word.first = first;
  word.gathered = gathered;
  for (int i = 0; i < WORD; i++) {
    word.threshold[i] = std::numeric_limits<float>::infinity();
    word.slot[i] = DUMP_SLOT;
  }
  return word;
}

// The smallest u that means a number above the threshold; 256 if there is none.
int least_value(float threshold, int32_t kind) {
  const float one = kind == GL_FEATURE_BYTES ? 255.0f : 1.0f;
  int low = 0, high = 256;
  while (low < high) {
    const int u = (low + high) / 2;
    if (static_cast<float>(u) / one > threshold) high = u;
    else low = u + 1;
  }
  return low;
}

void put(Encode& word, int at, const GlCircuit& circuit, int32_t input, int32_t slot) {
  const float threshold = circuit.encoder_threshold[input];
  const int least = least_value(threshold, circuit.feature_kind);
  word.threshold[at] = threshold;
  word.least[at] = static_cast<uint8_t>(std::min(least, 255));
  word.possible |= static_cast<uint64_t>(least < 256) << at;
  word.feature[at] = circuit.encoder_feature[input];
  word.slot[at] = slot;
}

}  // namespace

// Bit number r of each feature is compared together with bit number r of its neighbors, straight from the sample.
void plan_encoder(const GlCircuit& circuit, const std::vector<int32_t>& slot, std::vector<Encode>& words) {
  struct Bit {
    int32_t input, feature, rank;
  };
  std::vector<Bit> bits;
  for (int32_t i = 0; i < static_cast<int32_t>(slot.size()); i++)
    if (slot[i] != DUMP_SLOT) bits.push_back({i, circuit.encoder_feature[i], 0});
  std::stable_sort(bits.begin(), bits.end(), [](const Bit& a, const Bit& b) { return a.feature < b.feature; });
  for (size_t i = 1; i < bits.size(); i++)
    if (bits[i].feature == bits[i - 1].feature) bits[i].rank = bits[i - 1].rank + 1;
  std::stable_sort(bits.begin(), bits.end(), [](const Bit& a, const Bit& b) { return a.rank < b.rank; });
  const int64_t last_window = std::max<int64_t>(0, circuit.features - WORD);
  const size_t fewest = static_cast<size_t>(std::min(FEWEST_BITS, circuit.features));
  std::vector<int32_t> single;
  for (size_t i = 0, end; i < bits.size(); i = end) {
    const int64_t first = std::min<int64_t>(bits[i].feature, last_window);
    for (end = i; end < bits.size() && bits[end].rank == bits[i].rank && bits[end].feature < first + WORD;) end++;
    if (end - i < fewest) {
      for (size_t b = i; b < end; b++) single.push_back(bits[b].input);
      continue;
    }
    words.push_back(empty_word(first, false));
    for (size_t b = i; b < end; b++)
      put(words.back(), static_cast<int>(bits[b].feature - first), circuit, bits[b].input, slot[bits[b].input]);
  }
  for (size_t i = 0; i < single.size(); i++) {
    if (i % WORD == 0) words.push_back(empty_word(0, true));
    put(words.back(), static_cast<int>(i % WORD), circuit, single[i], slot[single[i]]);
  }
}

}  // namespace gatelight

// One SIMD path of the kernels for dense layers.
#include "dense/kernels.h"

#include "dense/clusters/tiles.h"
#include "dense/stack.h"
#include "runtime/paths.h"

namespace gatelight {
namespace GL_PATH {

static void forward(const Pass& pass, const Span& span, int64_t tile, float* scratch) {
  if (pass.width == 1) forward_tile<1>(pass, span, tile, scratch);
  else forward_tile<TILE>(pass, span, tile, scratch);
}
static void backward(const Pass& pass, const Span& span, int64_t tile, float* group, bool accumulate,
                     float* scratch) {
  if (pass.width == 1) backward_tile<1>(pass, span, tile, group, accumulate, scratch);
  else backward_tile<TILE>(pass, span, tile, group, accumulate, scratch);
}
static void pack_input(const Pass& pass, int64_t sample, float* rows) {
  const int samples = pass.wide_samples(sample);
  if (samples <= TILE) pack<TILE>(pass.x, sample, samples, pass.layers[0].in, Pad::Repeat, rows);
  else pack<WIDE_TILE>(pass.x, sample, samples, pass.layers[0].in, Pad::Repeat, rows);
}
static void unpack_grad_x(const Pass& pass, int64_t sample, const float* rows) {
  const int samples = pass.wide_samples(sample);
  if (samples <= TILE) unpack<TILE>(rows, pass.layers[0].in, pass.grad_x, sample, samples);
  else unpack<WIDE_TILE>(rows, pass.layers[0].in, pass.grad_x, sample, samples);
}

const DenseKernels dense_kernels = {forward, backward, pack_input, unpack_grad_x, cluster_fwd, cluster_bwd};

}  // namespace GL_PATH
}  // namespace gatelight

// One SIMD path of the kernels for convolutional layers.
#include "conv/kernels.h"

#include "conv/tree.h"
#include "runtime/paths.h"
#include "simd/pack.h"

namespace gatelight {
namespace GL_PATH {

// Calls f(Tree) for the tree of this arity and depth; false if there is no kernel for it.
template <class F>
static bool with_tree(int arity, int depth, F f) {
  switch (arity * 10 + depth) {
    case 21: return f(Tree<2, 1>()), true;
    case 23: return f(Tree<2, 3>()), true;
    case 31: return f(Tree<3, 1>()), true;
#if !defined(GL_FEW_TREES)  // builds with sanitizers take long
    case 22: return f(Tree<2, 2>()), true;
    case 32: return f(Tree<3, 2>()), true;
    case 41: return f(Tree<4, 1>()), true;
    case 61: return f(Tree<6, 1>()), true;
#endif
    default: return false;
  }
}

static bool supported(int arity, int depth) {
  return with_tree(arity, depth, [](auto) {});
}

static void forward(const Conv& conv, const float* x, float* out, int64_t out_plane, int64_t out_stride,
                         uint32_t* winners) {
  with_tree(conv.arity, conv.depth,
            [&](auto tree) { tree_fwd<decltype(tree)>(conv, x, out, out_plane, out_stride, winners); });
}

static void backward(const Conv& conv, const float* x, const float* grad_out, int64_t out_plane,
                          const uint32_t* winners, float* grad_x, float* group, bool accumulate) {
  with_tree(conv.arity, conv.depth, [&](auto tree) {
    tree_bwd<decltype(tree)>(conv, x, grad_out, out_plane, winners, grad_x, group, accumulate);
  });
}

static GlMatrix from_row(const GlMatrix& m, int64_t row) {
  return {m.data + row * (m.sample_major ? 1 : m.stride), m.stride, m.sample_major};
}

static void pack_rows(const GlMatrix& from, int64_t first_row, int64_t first, int samples, int64_t rows, bool zeros,
                      float* to) {
  pack<TILE>(from_row(from, first_row), first, samples, rows, zeros ? Pad::Zero : Pad::Repeat, to);
}

static void unpack_rows(const float* from, int64_t rows, const GlMatrix& to, int64_t first_row, int64_t first,
                        int samples) {
  unpack<TILE>(from, rows, from_row(to, first_row), first, samples);
}

const ConvKernels conv_kernels = {supported, forward, backward, pack_rows, unpack_rows};

}  // namespace GL_PATH
}  // namespace gatelight

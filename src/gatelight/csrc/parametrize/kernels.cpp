// One SIMD path of the kernels for parameters.
#include "parametrize/kernels.h"

#include "parametrize/coefficients.h"
#include "parametrize/maps.h"
#include "runtime/paths.h"

namespace gatelight {
namespace GL_PATH {

const ParameterKernels parameter_kernels = {MAPS, MAP_COUNT, make_coefficients, make_grads};

}  // namespace GL_PATH
}  // namespace gatelight

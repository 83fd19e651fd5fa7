// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_DIALECTS_SHARDING_RANDOMSTEP_H
#define SHARDC_DIALECTS_SHARDING_RANDOMSTEP_H

#include <cstdint>

namespace shardc {

/// Offsets of random numbers are multiples of this, as PyTorch's are: one step of the generator
/// makes four numbers.
inline constexpr int64_t kRandomStep = 4;

} // namespace shardc

#endif // SHARDC_DIALECTS_SHARDING_RANDOMSTEP_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Built only where NCCL's own header is: the plugin's types and constants are those of nccl.h.
#include "runtime/plugins/cuda/NcclLibrary.h"

#include <cstddef>
#include <nccl.h>

namespace real = shardc::plugin::cuda;

namespace {

static_assert(real::ncclOk == ncclSuccess && real::ncclIsInProgress == ncclInProgress);
static_assert(real::ncclTypeI8 == int(ncclInt8) && real::ncclTypeU8 == int(ncclUint8) &&
              real::ncclTypeI32 == int(ncclInt32) && real::ncclTypeI64 == int(ncclInt64) &&
              real::ncclTypeF16 == int(ncclFloat16) && real::ncclTypeF32 == int(ncclFloat32) &&
              real::ncclTypeF64 == int(ncclFloat64) && real::ncclTypeBF16 == int(ncclBfloat16));
static_assert(real::ncclReduceSum == int(ncclSum) && real::ncclReduceProd == int(ncclProd) &&
              real::ncclReduceMax == int(ncclMax) && real::ncclReduceMin == int(ncclMin) &&
              real::ncclReduceAvg == int(ncclAvg));
static_assert(real::ncclNoColor == NCCL_SPLIT_NOCOLOR &&
              sizeof(real::NcclId) == sizeof(ncclUniqueId));
static_assert(sizeof(real::NcclConfig) <= sizeof(ncclConfig_t) &&
              offsetof(real::NcclConfig, magic) == offsetof(ncclConfig_t, magic) &&
              offsetof(real::NcclConfig, version) == offsetof(ncclConfig_t, version) &&
              offsetof(real::NcclConfig, blocking) == offsetof(ncclConfig_t, blocking) &&
              offsetof(real::NcclConfig, netName) == offsetof(ncclConfig_t, netName) &&
              offsetof(real::NcclConfig, splitShare) == offsetof(ncclConfig_t, splitShare));
static_assert(real::NcclConfig{}.magic == NCCL_API_MAGIC &&
              real::NcclConfig{}.blocking == NCCL_CONFIG_UNDEF_INT);

/// What two parameters have in common: pointers to anything, or values of one size.
template <typename Mine, typename Theirs>
constexpr bool passesAs =
    std::is_pointer_v<Mine> == std::is_pointer_v<Theirs> && sizeof(Mine) == sizeof(Theirs);
template <typename Mine, typename Theirs> struct SameCall;
template <typename Result, typename... Mine, typename Real, typename... Theirs>
struct SameCall<Result (*)(Mine...), Real (*)(Theirs...)> {
  static constexpr bool value = sizeof...(Mine) == sizeof...(Theirs) &&
                                sizeof(Result) == sizeof(Real) && (passesAs<Mine, Theirs> && ...);
};
#define SHARDC_NCCL_SAME(member, symbol, result, parameters)                                       \
  static_assert(SameCall<decltype(real::NcclLibrary::member), decltype(&symbol)>::value);
SHARDC_NCCL(SHARDC_NCCL_SAME)

} // namespace

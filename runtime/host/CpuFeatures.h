// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether this machine has the CPU features that an artifact was compiled for.
#ifndef SHARDC_RUNTIME_HOST_CPUFEATURES_H
#define SHARDC_RUNTIME_HOST_CPUFEATURES_H

#include <span>
#include <string>
#include <vector>

namespace shardc::rt {

/// Of `features` (LLVM's names), those this CPU or operating system lacks or this runtime does not
/// know, in their order.
std::vector<std::string> missingCpuFeatures(std::span<const std::string> features);

/// The architecture this library was built for, as in a target triple ("x86_64").
const char *hostArchitecture();

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_HOST_CPUFEATURES_H

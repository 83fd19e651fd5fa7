// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slurm's short forms of lists.
#ifndef SHARDC_RUNTIME_LAUNCH_SLURMLISTS_H
#define SHARDC_RUNTIME_LAUNCH_SLURMLISTS_H

#include <cstdint>
#include <optional>
#include <string>

namespace shardc::rt {

/// The first host of "node[03-07,9],login": "node03". Nothing if it is no such list.
std::optional<std::string> firstHost(const std::string &list);

/// How many tasks the node at that place has, of "2(x3),1": 2, 2, 2 and 1. Nothing if the list does
/// not say.
std::optional<uint32_t> tasksOfNode(const std::string &list, uint32_t node);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_LAUNCH_SLURMLISTS_H

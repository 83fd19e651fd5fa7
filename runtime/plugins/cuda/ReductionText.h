// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the kernels that reduce in the order of positions have in common, for devices and for the
// emulated one: how an element is read, combined with those before it, and written.
#ifndef SHARDC_RUNTIME_PLUGINS_CUDA_REDUCTIONTEXT_H
#define SHARDC_RUNTIME_PLUGINS_CUDA_REDUCTIONTEXT_H

#include "runtime/abi/shardrt_program.h"
#include "runtime/plugins/Plugin.h"

#include <initializer_list>
#include <string>
#include <utility>

namespace shardc::plugin::cuda {

/// Replaces each $name in a text.
std::string fillText(std::string text,
                     std::initializer_list<std::pair<const char *, std::string>> names);

/// Pieces of a kernel. They have $bytes, an element's size, and $t, which is `type`.
struct ReductionText {
  std::string type; ///< of sums: of registers in PTX, of values in IR
  /// PTX: the element at [%at] into %v, with %h for 16 bits and %zero, which is 0.
  /// IR: the element at %at as %v.
  std::string load;
  /// PTX: %a is the sum %a with %v, or %v where %q is 0; %o is changed, and the predicates
  /// %isfirst, %better and %isnan. It has the labels `first` and `next`. IR: %o is the sum %a with
  /// %v.
  std::string combine;
  /// PTX: makes the result in %a of the sum there. IR: %done of %next. %n is how many there were.
  std::string finish;
  /// PTX: %a to [%at]. IR: %done to %to.
  std::string store;
  std::string zero; ///< IR: of the type of sums
};
ReductionText reductionTextPtx(shardrt_type type, uint32_t reduction);
ReductionText reductionTextIr(shardrt_type type, uint32_t reduction);

} // namespace shardc::plugin::cuda

#endif // SHARDC_RUNTIME_PLUGINS_CUDA_REDUCTIONTEXT_H

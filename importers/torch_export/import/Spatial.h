// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arguments of overloads with spatial dims.
#ifndef SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_SPATIAL_H
#define SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_SPATIAL_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

namespace shardc::torch_export {

/// `count` numbers, of which a list of one stands for all.
inline llvm::SmallVector<int64_t> spread(llvm::ArrayRef<int64_t> list, size_t count) {
  return list.size() == 1 ? llvm::SmallVector<int64_t>(count, list[0])
                          : llvm::SmallVector<int64_t>(list);
}

} // namespace shardc::torch_export

#endif // SHARDC_IMPORTERS_TORCH_EXPORT_IMPORT_SPATIAL_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the extents of the inputs determine: values of symbols, and every shape of one run.
#ifndef SHARDC_RUNTIME_MODEL_BINDING_H
#define SHARDC_RUNTIME_MODEL_BINDING_H

#include "runtime/executor/Slice.h"
#include "runtime/manifest/Manifest.h"

namespace shardc::rt {

using SymbolValues = std::vector<int64_t>;

/// Checks the inputs against the entry's specification (element types, ranks, extents, strides,
/// scope, ranges and constraints of symbols) and returns the symbols' values. Throws Failure with
/// all that is wrong. Data pointers are checked only if `withData`, and never of inputs that are
/// on rank 0 only (SHARDRT_ROOT).
SymbolValues bindSymbols(const Manifest &manifest, const EntrySpec &entry,
                         std::span<const shardrt_tensor> inputs, const Coordinates &coordinates,
                         bool withData);

/// Shapes of an entry for one tuple of symbols on one rank.
struct Shapes {
  std::vector<Slice> inputs;
  std::vector<Slice> outputs;
};
Shapes evaluateShapes(const EntrySpec &entry, const SymbolValues &symbols,
                      const Coordinates &coordinates);

/// Extents of one tensor. Throws Failure if they are negative.
std::vector<int64_t> evaluateShape(const TensorSpec &spec, const SymbolValues &symbols);

/// Checks how many tensors were given. Throws Failure.
void checkInputCount(const EntrySpec &entry, size_t count);
void checkOutputCount(const EntrySpec &entry, size_t count);

/// Checks the caller's output tensors against the shapes; of those that only rank 0 gets
/// (SHARDRT_ROOT), others give nothing. Throws Failure with all that is wrong.
void checkOutputs(const EntrySpec &entry, const Shapes &shapes,
                  std::span<const shardrt_tensor> outputs, bool isRoot);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_MODEL_BINDING_H

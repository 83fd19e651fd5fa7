// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The memory in which generated code computes, and the ways in and out.
#ifndef SHARDC_RUNTIME_EXECUTOR_PROGRAMMEMORY_H
#define SHARDC_RUNTIME_EXECUTOR_PROGRAMMEMORY_H

#include "runtime/support/Memory.h"

#include <cstdint>

namespace shardc::rt {

struct Slice;

/// Only an executor, and this, read and write what `allocator` returns: it may be the memory of a
/// device.
class ProgramMemory {
public:
  explicit ProgramMemory(const Allocator &host) : host(host) {}
  virtual ~ProgramMemory() = default;

  /// For what the model needs on the host meanwhile.
  const Allocator host;
  /// For arena, parameters, staging: all that generated code reads and writes.
  virtual const Allocator &allocator() const = 0;
  /// Of it, what collectives read and write most: where other ranks may reach it without a copy.
  virtual const Allocator &exchanged() const { return allocator(); }
  /// Whether generated code can use this memory, the caller's or that of a mapped file, where it
  /// is.
  virtual bool reaches(const void *data) const = 0;

  /// Copies a rank's part of a tensor of the caller's, or of a file, to dense memory of the
  /// program, and back. Strides are in elements.
  virtual void take(void *to, const Slice &part, const void *from, const int64_t *strides,
                    int64_t elementBytes) = 0;
  virtual void give(void *to, const int64_t *strides, const Slice &part, const void *from,
                    int64_t elementBytes) = 0;
  /// Whether memory of the program has these bytes (which are on the host).
  virtual bool holds(const void *data, const void *bytes, size_t count) const = 0;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_EXECUTOR_PROGRAMMEMORY_H

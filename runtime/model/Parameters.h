// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One rank's slices of the parameters, in place in a mapped file where that is possible.
#ifndef SHARDC_RUNTIME_MODEL_PARAMETERS_H
#define SHARDC_RUNTIME_MODEL_PARAMETERS_H

#include "runtime/executor/ProgramMemory.h"
#include "runtime/executor/Slice.h"
#include "runtime/manifest/Manifest.h"
#include "support/archive/TensorStore.h"

namespace shardc::rt {

/// A global or local tensor that a parameter may be taken from.
struct ParameterSource {
  shardrt_type type = 0;
  std::vector<int64_t> extents;
  std::vector<int64_t> strides; ///< in elements
  const void *data = nullptr;
  bool local = false;    ///< it is this rank's slice already
  bool borrowed = false; ///< it stays valid and unchanged while the parameters live
};

/// A complete set of parameters, built as a whole and then used: never half-loaded.
class ParameterSet {
public:
  /// From a file. Throws Failure with all missing, unknown and misfitting parameters.
  static ParameterSet fromFile(const Manifest &manifest, const shardrt_program &program,
                               const std::optional<shardc::Coordinate> &coordinate,
                               ProgramMemory &memory, const std::string &path);
  static ParameterSet fromCallback(const Manifest &manifest, const shardrt_program &program,
                                   const std::optional<shardc::Coordinate> &coordinate,
                                   ProgramMemory &memory, shardrt_find_parameter_fn find,
                                   void *context);
  /// Only the constants of the artifact. Complete if the program has no other parameters.
  static ParameterSet fromConstants(const Manifest &manifest, const shardrt_program &program,
                                    const std::optional<shardc::Coordinate> &coordinate,
                                    ProgramMemory &memory);

  /// Names of parameters that have no value yet.
  std::vector<std::string> unset(const Manifest &manifest) const;
  void *const *pointers() const { return slices.data(); }
  uint64_t bytes() const { return total; }
  uint64_t copiedBytes() const { return copied; }

  /// Where the program writes the new value of a mutable parameter, and making it current.
  void *nextValue(size_t parameter) { return next[parameter].data(); }
  void adoptNext(size_t parameter);

private:
  class Builder;
  std::shared_ptr<const shardc::TensorStore> file; ///< keeps the mapping
  std::vector<void *> slices;                      ///< null where unset or empty
  std::vector<bool> isSet;
  std::vector<Buffer> owned; ///< by parameter; empty where the slice is in place
  std::vector<Buffer> next;  ///< of mutable parameters
  uint64_t total = 0, copied = 0;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_MODEL_PARAMETERS_H

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
  std::span<const shardc::StoredBlock> blocks = {}; ///< where the elements are instead of in `data`
  bool local = false;                               ///< it is this rank's slice already
  bool borrowed = false; ///< it stays valid and unchanged while the parameters live
  bool inFile = false;   ///< and does so while the file is open
};

/// A complete set of parameters, built as a whole and then used: never half-loaded.
class ParameterSet {
public:
  /// What a file is read for.
  enum class Reading : uint8_t {
    Weights,    ///< states begin with their initial values, whatever the file says of them
    Checkpoint, ///< the file has the states too
  };
  /// From a file. Throws Failure with all missing, unknown and misfitting parameters.
  static ParameterSet fromFile(const Manifest &manifest, const shardrt_program &program,
                               const std::optional<shardc::Coordinate> &coordinate,
                               ProgramMemory &memory, const std::string &path, Reading reading);
  static ParameterSet fromCallback(const Manifest &manifest, const shardrt_program &program,
                                   const std::optional<shardc::Coordinate> &coordinate,
                                   ProgramMemory &memory, shardrt_find_parameter_fn find,
                                   void *context);
  /// Only the constants of the artifact, and the states where the program has no other parameters:
  /// then it is complete.
  static ParameterSet fromConstants(const Manifest &manifest, const shardrt_program &program,
                                    const std::optional<shardc::Coordinate> &coordinate,
                                    ProgramMemory &memory);

  /// Constants, states with their initial values, and room for all others: what an entry needs that
  /// gives parameters their first values.
  static ParameterSet withRoom(const Manifest &manifest, const shardrt_program &program,
                               const std::optional<shardc::Coordinate> &coordinate,
                               ProgramMemory &memory);

  /// Takes a new value of one parameter from `part` of a tensor; it must fit.
  void assign(size_t parameter, const Manifest &manifest, ProgramMemory &memory, const Slice &part,
              const shardrt_tensor &tensor);

  /// A run has written the parameter's value.
  void markSet(size_t parameter) { isSet[parameter] = true; }
  /// Names of parameters that have no value yet.
  std::vector<std::string> unset(const Manifest &manifest) const;
  /// Whether everything that an entry may write has a place.
  bool isRoomy() const { return hasRoom; }
  void *const *pointers() const { return slices.data(); }
  uint64_t bytes() const { return total; }
  uint64_t copiedBytes() const { return copied; }

private:
  class Builder;
  std::shared_ptr<const shardc::TensorStore> file; ///< keeps the mapping that slices are in
  std::vector<void *> slices;                      ///< null where unset or empty
  std::vector<bool> isSet;
  std::vector<Buffer> owned; ///< by parameter; empty where the slice is in place in a file, as no
                             ///< mutable parameter is
  uint64_t total = 0, copied = 0;
  bool hasRoom = false;
};

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_MODEL_PARAMETERS_H

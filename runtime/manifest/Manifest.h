// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The manifest of an artifact as values (docs/manifest.md).
#ifndef SHARDC_RUNTIME_MANIFEST_MANIFEST_H
#define SHARDC_RUNTIME_MANIFEST_MANIFEST_H

#include "dialects/sharding/Layout.h"
#include "runtime/abi/shardrt_program.h"
#include "runtime/manifest/Expression.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace shardc::rt {

struct TensorSpec {
  std::string name;
  shardrt_type type = 0;
  std::vector<Expression> shape;
  shardc::Layout layout;
  size_t mesh = 0; ///< of the layout: 0 is the program's, others count from 1 in Manifest::meshes

  size_t rank() const { return shape.size(); }
};

struct ParameterSpec : TensorSpec { ///< all dims are constants; name is the first of names
  std::vector<std::string> names;
  bool isConstant = false; ///< the data is in the artifact
  bool isMutable = false;
  /// Of a state (an optimizer's, say): what every element is where nothing has been loaded. Of
  /// partial sums it is 0, which every rank may hold.
  std::optional<double> initial;
  bool isSaved = true; ///< in checkpoints

  bool isState() const { return initial.has_value(); }
  /// Whether a file with weights has it.
  bool isWeight() const { return !isConstant && !isState(); }
  std::vector<int64_t> extents() const;
};

struct OutputSpec : TensorSpec {
  /// Index of the parameter whose new value this is; nothing for an output of the user's.
  std::optional<size_t> updates;
};

struct EntrySpec {
  std::string name;
  std::vector<TensorSpec> inputs;
  std::vector<OutputSpec> outputs;
  std::vector<size_t> userOutputs; ///< indices of outputs without `updates`, in order
  bool readsParameters = true;     ///< parameters and buffers; else it runs before they are loaded
};

struct SymbolSpec {
  std::string name;
  int64_t min = 0, max = std::numeric_limits<int64_t>::max(); ///< inclusive
};

struct ConstraintSpec {
  enum class Relation : uint8_t { Equal, NotEqual, LessEqual, Less, GreaterEqual, Greater };
  Expression left, right;
  Relation relation = Relation::Equal;
  std::string text; ///< for messages

  bool holds(int64_t left, int64_t right) const;
};

/// A mesh besides the program's, which inputs and outputs may be on.
struct MeshSpec {
  std::string name;
  shardc::Mesh mesh;
};

/// How a program trains: names of entries, inputs, outputs and states (docs/manifest.md). What the
/// program does not have is empty.
struct TrainingSpec {
  std::string step, accumulate, init;
  int64_t microBatches = 1; ///< runs of `accumulate` and one of `step` make a step
  std::string loss, learningRate, gradNorm, skipped;
  std::string nonFinite; ///< "continue", "skip", "stop"
  std::string lossScale; ///< a state
};

/// Where a rank is in each mesh, by TensorSpec::mesh; nothing in those that it is outside of.
using Coordinates = std::vector<std::optional<shardc::Coordinate>>;

struct Manifest {
  std::string tool, name, artifactHash, sequenceHash;
  std::string targetKind, triple, cpu;
  std::vector<std::string> features;
  std::vector<std::string> chips; ///< of devices that there is code for, "sm_90"
  bool isEmulated = false;        ///< there is code for the emulated device
  int64_t worldSize = 1;
  shardc::Mesh mesh;
  std::vector<MeshSpec> meshes;
  std::vector<SymbolSpec> symbols;
  std::vector<std::string> symbolNames; ///< of `symbols`
  std::vector<ConstraintSpec> constraints;
  std::vector<ParameterSpec> parameters;
  std::vector<std::string> ignoredParameters; ///< patterns
  std::vector<std::string> libraries; ///< that generated code calls through services: "blas"
  std::vector<EntrySpec> entries;
  std::optional<TrainingSpec> training; ///< of programs that train

  /// Throws Failure (SHARDRT_BAD_FILE) with everything that is wrong, each with the path of its
  /// key.
  static Manifest parse(std::string_view json);
  Coordinates coordinatesOf(int64_t rank) const;
  /// Whether the tables of the artifact fit this manifest; throws with everything that does not.
  void checkProgram(const shardrt_program &program) const;
};

/// Whether `text` matches `pattern`, in which * stands for any characters.
bool matchesPattern(std::string_view pattern, std::string_view text);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_MANIFEST_MANIFEST_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Holds a plan against the names and shapes of a model. No IR: the pass that applies a plan fills
// ModelNames and writes the annotations back.
#ifndef SHARDC_IMPORTERS_PLAN_RESOLVE_H
#define SHARDC_IMPORTERS_PLAN_RESOLVE_H

#include "importers/plan/Plan.h"

namespace shardc::plan {

/// What the dims of a parameter are to ops that use it, from their sharding rules.
struct DimRoles {
  /// The dim that only the parameter gives to the result: the output features of a linear layer.
  std::optional<int64_t> columnDim;
  /// The dim that is contracted or looked up: the input features of a linear layer.
  std::optional<int64_t> rowDim;
  /// The dim that an index selects from: the vocabulary of an embedding.
  std::optional<int64_t> lookupDim;

  /// Takes from `other` what is not known here.
  void complete(const DimRoles &other);
};

/// A parameter, input or output of the model.
struct NamedTensor {
  std::vector<std::string> names; ///< several where tensors are tied
  std::vector<int64_t> shape;     ///< DimSplit.h's kDynamic where symbolic
  /// For parameters: its roles in all of the model, the first op that gives one deciding.
  DimRoles roles;
  bool isBuffer =
      false; ///< a buffer or constant: placed by its exact name only, never by a pattern
  /// For parameters without roles: the op that makes something else of it on the way to where it is
  /// used, and its place; empty where no op does.
  std::string changedBy = {};
};

/// A parameter as a module sees it. Tied ones differ from module to module: an embedding looks up
/// the dim that a head on the same table gives to its result.
struct ModuleParameter {
  unsigned index; ///< into ModelNames::parameters
  DimRoles roles; ///< in the ops inside the module; in all of the model where none of them uses it
};

/// A module by its path, e.g. `model.layers.0.mlp`.
struct ModuleBoundary {
  std::string path;
  std::vector<ModuleParameter> parameters;   ///< its own parameters, not those of children
  std::vector<std::vector<int64_t>> inputs;  ///< shapes of activations that enter
  std::vector<std::vector<int64_t>> outputs; ///< shapes of values that leave
};

struct ModelNames {
  /// Outputs: what the model returns, then the inputs that it changes. New values of buffers are
  /// where the buffers are.
  std::vector<NamedTensor> parameters, inputs, outputs;
  unsigned numReturned = 0; ///< of the outputs: those with a position
  std::vector<ModuleBoundary> modules;
};

/// What the plan says of one tensor; open on every axis that it does not mention.
struct Annotation {
  enum class Target : uint8_t { Parameter, Input, Output, ModuleInput, ModuleOutput };
  Target target;
  unsigned index;     ///< into ModelNames::parameters, inputs, outputs or modules
  unsigned value = 0; ///< ModuleInput, ModuleOutput: which of the module's boundary values
  /// The mesh of the layout by its name; empty for that of the program. On another mesh nothing is
  /// open: an axis that the plan does not mention replicates.
  std::string mesh;
  Layout layout;
  std::vector<std::string> origins; ///< one per mesh axis; empty where open
  /// One per mesh axis: how far the request goes where others disagree about the axis. Styles say
  /// how ops compute (pinned). Placements of a parameter do too, unless the axis also shards an
  /// input: then it is a data axis, and the parameter is stored so and gathered for use (weak;
  /// fully sharded data parallelism).
  enum class Strength : uint8_t { Pinned, Normal, Weak };
  std::vector<Strength> strengths;
};

struct Resolution {
  std::vector<Annotation> annotations;
  std::vector<std::string>
      errors; ///< every mistake of the plan, each with its origin and the nearest real names
  /// What was decided that the plan does not say: a rule for one name of a tied parameter replaces
  /// what another rule says of its other names too.
  std::vector<std::string> remarks;
};

/// A rule on an exact name beats one with a wildcard, and a `--place` spec beats the file; any
/// other disagreement about an axis of a tensor is an error, and so is every one between rules that
/// reach a tied parameter by different names. Patterns match after a leading base-model prefix too
/// (`layers.*` finds `model.layers.*`). Linear in rules times names.
Resolution resolvePlan(const Plan &plan, const Mesh &mesh, const ModelNames &model);

/// With `zero: 3`: parameters are stored in shards of the data axes, those that shard inputs, where
/// the plan says nothing else, and gathered for use. Scalars stay whole.
void storeShards(const Training &training, const Mesh &mesh, const ModelNames &model,
                 std::vector<Annotation> &annotations);

} // namespace shardc::plan

#endif // SHARDC_IMPORTERS_PLAN_RESOLVE_H

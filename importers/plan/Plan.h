// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Placement plans: what the user says about where tensors are. A plan is a YAML file, `--place`
// specs, or both; here it is only read, not yet held against a model (passes/placement does that).
#ifndef SHARDC_IMPORTERS_PLAN_PLAN_H
#define SHARDC_IMPORTERS_PLAN_PLAN_H

#include "dialects/sharding/Layout.h"
#include "importers/plan/CustomOps.h"
#include "importers/plan/Training.h"

#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>
#include <vector>

namespace shardc::plan {

enum class Section : uint8_t { Input, Output, Parameter, Module };
llvm::StringRef sectionName(Section section);

/// Styles, named as Hugging Face's `tp_plan` and `ep_plan` and PyTorch's ParallelStyle do; several
/// of their names may be one style here.
enum class Style : uint8_t {
  Colwise,
  Rowwise,
  ColwiseGatherOutput,
  EmbeddingRowwise,
  Sequence,
  Experts,    ///< dim 0, which counts experts, is sharded
  Replicated, ///< whole on every rank
  Unchanged,  ///< says nothing: what the style does elsewhere follows from the program
};

struct AxisPlacement {
  std::string axis;
  Placement placement;
};

/// One line of a plan: a pattern for names, and either a style or placements.
struct Rule {
  Section section;
  std::string pattern;
  std::optional<Style> style;
  std::vector<AxisPlacement> placements;
  /// `R` without an axis: replicated over every axis of the mesh.
  bool replicateAll = false;
  /// Where the rule was written, for messages: `plan.yaml:7` or `--place param:W=tp:S(1)`.
  std::string origin;
  /// The mesh that the tensor is on, by its name; empty for that of the program.
  std::string mesh = {};
  /// Of a section that was made for a class of models (`base_model_tp_plan`): a rule that matches
  /// nothing of this model is a remark.
  bool isPasted = false;
  /// Of a plan for experts: a style acts on the axis `ep` where the mesh has one.
  bool isOfExperts = false;
};

/// A mesh besides the program's, which inputs and outputs may be on.
struct NamedMesh {
  std::string name;
  Mesh mesh;
};

/// Modules whose forward the backward computes again (activation checkpointing).
struct Recomputed {
  std::string pattern;
  std::string origin; ///< as of a rule
};

struct Plan {
  Mesh mesh; ///< without axes where the plan names none
  std::vector<NamedMesh> meshes;
  std::vector<Recomputed> recompute;
  /// Whether the backward gathers weights again that the forward has gathered; not said: as the
  /// compiler finds best.
  std::optional<bool> reshardAfterForward;
  std::optional<Training> training; ///< the section `train:`
  std::string random;               ///< how ranks share random numbers; empty: not said
  std::string tpAxis;               ///< axis that styles act on; empty: `tp`, or the only axis
  std::vector<Rule> rules;
  std::vector<CustomOp> ops;         ///< the section `ops:`
  std::vector<std::string> opErrors; ///< those of the errors that are in it
};

/// Reads a YAML plan. All mistakes are appended to `errors`, each with `file:line`.
void parseYaml(llvm::StringRef text, llvm::StringRef file, Plan &plan,
               std::vector<std::string> &errors);

/// Reads one `--place` spec: `input:NAME=dp:S(0)`, `param:GLOB=dp:S(0),tp:S(1)`,
/// `module:GLOB=colwise`, `output:NAME=R`, `input:NAME=mesh:readers,io:S(0)`.
void parsePlaceSpec(llvm::StringRef spec, Plan &plan, std::vector<std::string> &errors);

/// Reads `dp=2,tp=4`, or with a list of ranks `dp=2,tp=2,devices=[3,2,1,0]`; at most 65,536 ranks.
/// No axes after an error.
void parseMesh(llvm::StringRef text, llvm::StringRef origin, Mesh &mesh,
               std::vector<std::string> &errors);

/// Reads `readers:io=2,devices=[4,5]` and adds it to the plan's meshes, or takes the place of the
/// one with this name.
void parseNamedMesh(llvm::StringRef text, llvm::StringRef origin, Plan &plan,
                    std::vector<std::string> &errors);

/// Reads the right-hand side of a rule: a style, `R`, or `dp:S(0),tp:S(1)`, the latter also with
/// the mesh that the axes are of: `mesh:readers,io:S(0)`.
void parseRuleValue(llvm::StringRef value, Rule &rule, std::vector<std::string> &errors);

/// Whether `name` matches `pattern`: `*` stands for any characters, dots included; `{a,b}` for one
/// of a list; all else for itself. Linear in the pattern times the name.
bool matchesPattern(llvm::StringRef pattern, llvm::StringRef name);
bool hasWildcard(llvm::StringRef pattern);

/// The names closest to `wanted`, at most `count`, nearest first, as `a, b or c`; empty where there
/// is none. A pattern is compared by its last parts.
std::string nearestNames(llvm::StringRef wanted, const std::vector<std::string> &names,
                         unsigned count = 3);

} // namespace shardc::plan

#endif // SHARDC_IMPORTERS_PLAN_PLAN_H

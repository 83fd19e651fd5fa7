// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rule values, `--place` specs and mesh texts.
#include "importers/plan/Plan.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/Twine.h"

using llvm::StringRef;

namespace shardc::plan {
namespace {

struct StyleName {
  llvm::StringLiteral name;
  Style style;
};
// What a style of Hugging Face's does beside sharding weights (gathers, reductions of activations
// and of gradients, parts of packed weights) follows from the program, so that several names are
// one style. docs/plans.md says what each name means there and here.
constexpr StyleName styleNames[] = {
    {"colwise", Style::Colwise},
    {"rowwise", Style::Rowwise},
    {"packed_colwise", Style::Colwise},
    {"packed_rowwise", Style::Rowwise},
    {"embedding_rowwise", Style::EmbeddingRowwise},
    {"embedding_colwise", Style::ColwiseGatherOutput},
    {"colwise_gather_output", Style::ColwiseGatherOutput},
    {"colwise_rep", Style::ColwiseGatherOutput},
    {"rowwise_split_input", Style::Rowwise},
    {"rowwise_rep", Style::Rowwise},
    {"sequence", Style::Sequence},
    {"sequence_parallel", Style::Sequence},
    {"grouped_gemm", Style::Experts},
    {"replicate", Style::Replicated},
    {"replicated_with_grad_allreduce", Style::Replicated},
    {"mla_kv_a_proj", Style::Replicated},
    {"all_reduce", Style::Unchanged},
    {"ep_dispatch_experts", Style::Unchanged},
    {"ep_router", Style::Unchanged},
    {"gather", Style::Unchanged},
    {"local", Style::Unchanged},
    {"local_params", Style::Unchanged},
    {"moe_identity_expert", Style::Unchanged},
    {"moe_tp_experts", Style::Unchanged},
    // The names before transformers 5.
    {"local_colwise", Style::Colwise},
    {"local_rowwise", Style::Rowwise},
    {"local_packed_rowwise", Style::Rowwise},
};

std::string nearestStyles(StringRef wanted) {
  std::vector<std::string> names;
  for (const StyleName &s : styleNames)
    names.push_back(s.name.str());
  return nearestNames(wanted, names);
}

/// Splits at commas outside parentheses and brackets: `dp:S(0, blocks = 3),tp:R`.
llvm::SmallVector<StringRef> splitTopLevel(StringRef text) {
  llvm::SmallVector<StringRef> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      parts.push_back(text.slice(begin, i).trim());
      begin = i + 1;
    } else if (text[i] == '(' || text[i] == '[') {
      ++depth;
    } else if (text[i] == ')' || text[i] == ']') {
      --depth;
    }
  }
  return parts;
}

bool isIdentifier(StringRef text) {
  return !text.empty() && !llvm::isDigit(text.front()) &&
         llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

} // namespace

StringRef sectionName(Section section) {
  switch (section) {
  case Section::Input:
    return "input";
  case Section::Output:
    return "output";
  case Section::Parameter:
    return "parameter";
  case Section::Module:
    return "module";
  }
  return "";
}

void parseRuleValue(StringRef value, Rule &rule, std::vector<std::string> &errors) {
  value = value.trim();
  auto error = [&](const llvm::Twine &what) { errors.push_back(rule.origin + ": " + what.str()); };
  if (value == "R") {
    rule.replicateAll = true;
    return;
  }
  if (isIdentifier(value)) {
    const auto *known =
        llvm::find_if(styleNames, [&](const StyleName &s) { return s.name == value; });
    if (known == std::end(styleNames))
      error("unknown style '" + value + "' for '" + rule.pattern + "'; the nearest are " +
            nearestStyles(value) + ", and placements are written axis:S(0), axis:R or axis:P(sum)");
    else if (rule.section != Section::Module)
      error("style '" + value + "' applies to modules, not to " + sectionName(rule.section) + " '" +
            rule.pattern + "'; write placements, e.g. tp:S(0)");
    else
      rule.style = known->style;
    return;
  }
  for (StringRef part : splitTopLevel(value)) {
    auto [axis, placementText] = part.split(':');
    axis = axis.trim();
    if (!part.contains(':') || axis.empty()) {
      error("'" + part + "' for '" + rule.pattern + "' is not axis:placement; e.g. tp:S(0)");
      continue;
    }
    Parsed<Placement> placement = parsePlacement({placementText.data(), placementText.size()});
    // An axis may be called so too: then a placement follows.
    if (axis == "mesh" && !placement && isIdentifier(placementText.trim())) {
      if (rule.section == Section::Module || rule.section == Section::Parameter)
        error("'" + part + "' for '" + rule.pattern +
              "': only inputs and outputs may be on another mesh; modules compute, and their "
              "parameters are, on the mesh of the program");
      rule.mesh = placementText.trim().str();
      continue;
    }
    if (llvm::any_of(rule.placements, [&](const AxisPlacement &p) { return p.axis == axis; })) {
      error("axis '" + axis + "' is given twice for '" + rule.pattern + "'");
      continue;
    }
    if (!placement) {
      error("'" + placementText.trim() + "' for axis '" + axis + "' of '" + rule.pattern +
            "': " + placement.error);
      continue;
    }
    rule.placements.push_back({axis.str(), *placement.value});
  }
}

void parsePlaceSpec(StringRef spec, Plan &plan, std::vector<std::string> &errors) {
  std::string origin = "--place " + spec.str();
  auto [target, value] = spec.split('=');
  auto [kind, pattern] = target.split(':');
  auto section = llvm::StringSwitch<std::optional<Section>>(kind.trim())
                     .Case("input", Section::Input)
                     .Case("output", Section::Output)
                     .Cases({"param", "parameter"}, Section::Parameter)
                     .Case("module", Section::Module)
                     .Default(std::nullopt);
  if (!section || pattern.trim().empty() || value.trim().empty()) {
    errors.push_back(origin +
                     ": not KIND:NAME=VALUE with KIND one of input, output, param, module; e.g. "
                     "param:*.weight=tp:S(0) or module:*.q_proj=colwise");
    return;
  }
  Rule rule{*section, pattern.trim().str(), std::nullopt, {}, false, origin};
  parseRuleValue(value, rule, errors);
  plan.rules.push_back(std::move(rule));
}

// Plans and tables have an entry for each rank: a slip of the finger must not fill memory.
static constexpr int64_t mostRanks = 65536;

/// `[3, 2, 1, 0]`.
static bool parseRanks(StringRef text, std::vector<int64_t> &ranks) {
  if (!text.consume_front("[") || !text.consume_back("]"))
    return false;
  for (StringRef part : splitTopLevel(text)) {
    int64_t rank = 0;
    if (part.getAsInteger(10, rank))
      return false;
    ranks.push_back(rank);
  }
  return true;
}

void parseMesh(StringRef text, StringRef origin, Mesh &mesh, std::vector<std::string> &errors) {
  int64_t ranks = 1;
  mesh = Mesh();
  size_t before = errors.size();
  auto error = [&](const llvm::Twine &what) { errors.push_back((origin + ": " + what).str()); };
  bool listsDevices = false;
  for (StringRef part : splitTopLevel(text)) {
    auto [name, size] = part.split('=');
    name = name.trim();
    if (name == "devices" && size.trim().starts_with("[")) {
      listsDevices = true;
      if (!parseRanks(size.trim(), mesh.deviceIds))
        error("'" + part + "' is no list of ranks; e.g. devices=[3,2,1,0]");
      continue;
    }
    int64_t extent = 0;
    if (!isIdentifier(name) || size.trim().getAsInteger(10, extent) || extent < 1) {
      error("'" + part + "' is not NAME=SIZE with a size of at least 1; e.g. dp=2,tp=4");
      continue;
    }
    if (llvm::any_of(mesh.axes, [&](const MeshAxis &a) { return a.name == name; })) {
      error("axis '" + name + "' is given twice");
      continue;
    }
    if (extent > mostRanks / ranks) {
      error("it has more than " + llvm::Twine(mostRanks) + " ranks, the most that a mesh may have");
      break;
    }
    ranks *= extent;
    mesh.axes.push_back({name.str(), extent});
  }
  if (errors.size() == before && listsDevices) {
    for (const std::string &problem : mesh.validate())
      error(problem);
    for (int64_t rank : mesh.deviceIds)
      if (rank >= mostRanks)
        error("rank " + llvm::Twine(rank) + " is outside of every world: ranks are 0 to " +
              llvm::Twine(mostRanks - 1));
  }
  if (errors.size() != before)
    mesh = Mesh();
}

void parseNamedMesh(StringRef text, StringRef origin, Plan &plan,
                    std::vector<std::string> &errors) {
  auto [name, axes] = text.split(':');
  name = name.trim();
  auto error = [&](const llvm::Twine &what) { errors.push_back((origin + ": " + what).str()); };
  if (!text.contains(':') || !isIdentifier(name))
    return error("'" + text + "' is not NAME:AXIS=SIZE; e.g. readers:io=2,devices=[4,5]");
  if (parsePlacement({name.data(), name.size()}))
    return error("a mesh cannot be called '" + name + "', which is a placement");
  NamedMesh named{name.str(), {}};
  parseMesh(axes, (origin + ": mesh '" + name + "'").str(), named.mesh, errors);
  auto known = llvm::find_if(plan.meshes, [&](const NamedMesh &m) { return m.name == named.name; });
  if (known != plan.meshes.end())
    *known = std::move(named);
  else
    plan.meshes.push_back(std::move(named));
}

} // namespace shardc::plan

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/plan/Resolve.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <map>
#include <tuple>

using llvm::StringRef;
using llvm::Twine;

namespace shardc::plan {

void DimRoles::complete(const DimRoles &other) {
  columnDim = columnDim ? columnDim : other.columnDim;
  rowDim = rowDim ? rowDim : other.rowDim;
  lookupDim = lookupDim ? lookupDim : other.lookupDim;
}

namespace {

using Target = Annotation::Target;
using Key = std::tuple<Target, unsigned, unsigned>;

class Resolver {
public:
  Resolver(const Plan &plan, const Mesh &mesh, const ModelNames &model)
      : plan(plan), mesh(mesh), model(model) {}

  Resolution run() {
    chooseStyleAxis();
    for (const Rule &rule : plan.rules)
      apply(rule);
    for (const Recomputed &entry : plan.recompute) {
      Rule rule{Section::Module, entry.pattern, std::nullopt, {}, false, entry.origin};
      matchModules(rule);
    }
    std::vector<bool> isDataAxis(mesh.numAxes());
    for (auto &[key, state] : states)
      for (unsigned a = 0; a < mesh.numAxes(); ++a)
        if (std::get<0>(key) == Target::Input && state[a].placement.isShard())
          isDataAxis[a] = true;
    for (auto &[key, state] : states) {
      Annotation annotation{
          std::get<0>(key), std::get<1>(key), std::get<2>(key), Layout(mesh), {}, {}};
      for (unsigned a = 0; a < mesh.numAxes(); ++a) {
        annotation.layout.placements[a] = state[a].placement;
        annotation.origins.push_back(state[a].rule ? state[a].rule->origin : "");
        annotation.strengths.push_back(strengthOf(annotation.target, state[a], isDataAxis[a]));
      }
      result.annotations.push_back(std::move(annotation));
    }
    return std::move(result);
  }

private:
  /// Those names of a tied parameter that a rule reached it by. Empty for tensors with one name.
  using Via = std::vector<StringRef>;

  /// What is known so far of one axis of one tensor, and who said so.
  struct AxisState {
    Placement placement;
    const Rule *rule = nullptr;
    Via via;
  };

  struct Subject {
    Key key;
    StringRef name;
    const std::vector<int64_t> &shape;
    Via via;
  };

  static Annotation::Strength strengthOf(Target target, const AxisState &state, bool isDataAxis) {
    if (target != Target::Parameter || !state.rule)
      return Annotation::Strength::Normal;
    return isDataAxis && !state.rule->style ? Annotation::Strength::Weak
                                            : Annotation::Strength::Pinned;
  }

  void error(const Rule &rule, const Twine &what) {
    result.errors.push_back(rule.origin + ": " + what.str());
  }

  std::string axisNames() const {
    std::vector<std::string> names;
    for (const MeshAxis &axis : mesh.axes)
      names.push_back(axis.name);
    return llvm::join(names, ", ");
  }

  void chooseStyleAxis() {
    if (!plan.tpAxis.empty())
      styleAxis = mesh.axisIndex(plan.tpAxis);
    else if (auto tp = mesh.axisIndex("tp"))
      styleAxis = tp;
    else if (mesh.numAxes() == 1)
      styleAxis = 0;
    if (!plan.tpAxis.empty() && !styleAxis)
      result.errors.push_back("tp_axis '" + plan.tpAxis + "' is no axis of the mesh; it has " +
                              axisNames());
  }

  static unsigned precedence(const Rule &rule) {
    return (StringRef(rule.origin).starts_with("--place") ? 2 : 0) +
           (hasWildcard(rule.pattern) ? 0 : 1);
  }

  struct Matches {
    std::vector<unsigned> entries;
    std::string pattern; ///< the rule's, with the base model's prefix where that was needed
  };

  /// Indices of the entries that have a matching name. The base-model prefix is tried only where
  /// nothing matches as written.
  template <typename GetNames> Matches match(const Rule &rule, unsigned count, GetNames getNames) {
    Matches found;
    for (const std::string &pattern : {rule.pattern, "*." + rule.pattern}) {
      found.pattern = pattern;
      for (unsigned i = 0; i < count; ++i)
        if (llvm::any_of(getNames(i),
                         [&](const std::string &name) { return matchesPattern(pattern, name); }))
          found.entries.push_back(i);
      if (!found.entries.empty())
        return found;
    }
    std::vector<std::string> all;
    for (unsigned i = 0; i < count; ++i)
      for (const std::string &name : getNames(i))
        all.push_back(name);
    std::string nearest = nearestNames(rule.pattern, all);
    if (rule.section == Section::Output && llvm::any_of(model.parameters, [&](const auto &tensor) {
          return llvm::is_contained(tensor.names, rule.pattern);
        })) {
      error(rule, "'" + rule.pattern +
                      "' is a parameter or buffer: its new value is placed as it is; write param:" +
                      rule.pattern);
      return found;
    }
    error(rule, "'" + rule.pattern + "' matches no " + sectionName(rule.section) + " of the model" +
                    (nearest.empty() ? "" : "; the nearest are " + nearest));
    return found;
  }

  static Via tiedNames(const NamedTensor &tensor, llvm::function_ref<bool(StringRef)> isMeant) {
    Via via;
    if (tensor.names.size() > 1)
      llvm::copy_if(tensor.names, std::back_inserter(via), isMeant);
    return via;
  }

  std::string request(unsigned axis, const Placement &placement) const {
    return mesh.axes[axis].name + ":" + placement.str();
  }

  void place(const Rule &rule, const Subject &subject, unsigned axis, const Placement &placement) {
    if (placement.isPartial() && std::get<0>(subject.key) == Target::Parameter)
      return error(rule, request(axis, placement) + " does not fit '" + subject.name +
                             "': every rank loads a parameter or buffer from the file, so none has "
                             "a partial value; write " +
                             mesh.axes[axis].name + ":R for a whole copy on every rank, or " +
                             mesh.axes[axis].name + ":S(d) for a shard of dim d");
    Layout alone(mesh);
    alone.placements[axis] = placement;
    for (const std::string &problem : alone.validate(subject.shape, /*allowOpen=*/true))
      return error(rule,
                   request(axis, placement) + " does not fit '" + subject.name + "': " + problem);
    AxisState &old = states.try_emplace(subject.key, mesh.numAxes()).first->second[axis];
    AxisState asked{placement, &rule, subject.via};
    if (!old.rule) {
      old = std::move(asked);
    } else if (old.placement == placement) {
      for (StringRef name : asked.via)
        if (!llvm::is_contained(old.via, name))
          old.via.push_back(name);
      if (precedence(*old.rule) < precedence(rule))
        old.rule = &rule;
    } else {
      settle(subject, axis, old, std::move(asked));
    }
  }

  /// Two rules ask for different placements.
  void settle(const Subject &subject, unsigned axis, AxisState &old, AxisState asked) {
    std::string former = "'" + old.rule->pattern + "' (" + old.rule->origin + ") asks for " +
                         request(axis, old.placement);
    std::string latter =
        "'" + asked.rule->pattern + "' asks for " + request(axis, asked.placement) + " on '";
    bool differentNames = !asked.via.empty() && llvm::none_of(asked.via, [&](StringRef name) {
      return llvm::is_contained(old.via, name);
    });
    if (differentNames)
      return error(*asked.rule, latter + asked.via.front() + "', which is tied to '" +
                                    old.via.front() + "'; for that, " + former +
                                    ". It is one tensor: ask for the same, or leave one out");
    if (precedence(*old.rule) == precedence(*asked.rule))
      return error(*asked.rule, latter + subject.name + "', but " + former);
    if (precedence(*old.rule) < precedence(*asked.rule))
      std::swap(old, asked);
    // `old` holds what stays, `asked` what it replaces.
    for (StringRef name : asked.via)
      if (!llvm::is_contained(old.via, name))
        result.remarks.push_back(
            old.rule->origin + ": '" + old.via.front().str() + "' is tied to '" + name.str() +
            "': " + request(axis, old.placement) + " replaces " + request(axis, asked.placement) +
            " of '" + asked.rule->pattern + "' (" + asked.rule->origin + ") there too");
  }

  void placeAll(const Rule &rule, const Subject &subject) {
    if (rule.replicateAll)
      for (unsigned a = 0; a < mesh.numAxes(); ++a)
        place(rule, subject, a, Placement::replicate());
    for (const AxisPlacement &p : rule.placements)
      if (auto axis = mesh.axisIndex(p.axis))
        place(rule, subject, *axis, p.placement);
  }

  void apply(const Rule &rule) {
    for (const AxisPlacement &p : rule.placements)
      if (!mesh.axisIndex(p.axis))
        error(rule, "the mesh has no axis '" + Twine(p.axis) + "'; it has " + axisNames());
    if (rule.section == Section::Module)
      return applyToModules(rule);
    const auto &[tensors, target] =
        rule.section == Section::Parameter ? std::pair(&model.parameters, Target::Parameter)
        : rule.section == Section::Input   ? std::pair(&model.inputs, Target::Input)
                                           : std::pair(&model.outputs, Target::Output);
    const auto &list = *tensors;
    // Inputs and outputs are also known by their position.
    unsigned position = 0;
    if (rule.section != Section::Parameter && !StringRef(rule.pattern).getAsInteger(10, position)) {
      size_t count = rule.section == Section::Output ? model.numReturned : list.size();
      if (position >= count)
        return error(rule, "there is no " + sectionName(rule.section) + " " + Twine(position) +
                               "; the model has " + Twine(count));
      return placeAll(
          rule, {{target, position, 0}, list[position].names.front(), list[position].shape, {}});
    }
    Matches found = match(rule, list.size(), [&](unsigned i) -> auto & { return list[i].names; });
    for (unsigned i : found.entries)
      if (!list[i].isBuffer || !hasWildcard(rule.pattern)) {
        auto isMeant = [&](StringRef name) { return matchesPattern(found.pattern, name); };
        placeAll(rule, {{target, i, 0},
                        list[i].names.front(),
                        list[i].shape,
                        target == Target::Parameter ? tiedNames(list[i], isMeant) : Via()});
      }
  }

  Matches matchModules(const Rule &rule) {
    return match(rule, model.modules.size(),
                 [&](unsigned i) { return std::vector<std::string>{model.modules[i].path}; });
  }

  void applyToModules(const Rule &rule) {
    Matches matched = matchModules(rule);
    if (rule.style && !styleAxis) {
      if (plan.tpAxis.empty())
        error(rule, "which mesh axis does the style of '" + Twine(rule.pattern) +
                        "' act on? Name one tp, or set tp_axis; the "
                        "axes are " +
                        axisNames());
      return;
    }
    for (unsigned m : matched.entries) {
      const ModuleBoundary &module = model.modules[m];
      if (rule.style)
        applyStyle(rule, m);
      else
        for (unsigned v = 0; v < module.outputs.size(); ++v)
          placeAll(rule, {{Target::ModuleOutput, m, v}, module.path, module.outputs[v], {}});
    }
  }

  void placeBoundary(const Rule &rule, Target target, unsigned m, const Placement &placement) {
    const ModuleBoundary &module = model.modules[m];
    const auto &shapes = target == Target::ModuleInput ? module.inputs : module.outputs;
    for (unsigned v = 0; v < shapes.size(); ++v)
      place(rule, {{target, m, v}, module.path, shapes[v], {}}, *styleAxis, placement);
  }

  static std::optional<int64_t> shardedDim(Style style, const DimRoles &roles) {
    switch (style) {
    case Style::Colwise:
    case Style::ColwiseGatherOutput:
      return roles.columnDim;
    case Style::Rowwise:
      return roles.rowDim;
    case Style::EmbeddingRowwise:
      return roles.lookupDim;
    case Style::Sequence:
      break;
    }
    return std::nullopt;
  }

  void applyStyle(const Rule &rule, unsigned m) {
    const ModuleBoundary &module = model.modules[m];
    if (*rule.style == Style::Sequence) {
      placeBoundary(rule, Target::ModuleInput, m, Placement::shard(1));
      placeBoundary(rule, Target::ModuleOutput, m, Placement::shard(1));
    }
    bool any = *rule.style == Style::Sequence;
    for (const ModuleParameter &own : module.parameters) {
      const NamedTensor &parameter = model.parameters[own.index];
      if (parameter.isBuffer)
        continue;
      std::optional<int64_t> dim = shardedDim(*rule.style, own.roles);
      any |= dim.has_value();
      auto isMeant = [&](StringRef name) { return name.rsplit('.').first == module.path; };
      // The bias of a row-parallel layer and the weights of a norm are whole on every rank.
      place(rule,
            {{Target::Parameter, own.index, 0},
             parameter.names.front(),
             parameter.shape,
             tiedNames(parameter, isMeant)},
            *styleAxis, dim ? Placement::shard(*dim) : Placement::replicate());
    }
    if (!any)
      reportNothingToShard(rule, module);
    if (*rule.style == Style::ColwiseGatherOutput)
      placeBoundary(rule, Target::ModuleOutput, m, Placement::replicate());
  }

  void reportNothingToShard(const Rule &rule, const ModuleBoundary &module) {
    std::vector<std::string> children;
    for (const ModuleBoundary &other : model.modules)
      if (!other.parameters.empty() && StringRef(other.path).starts_with(module.path + "."))
        children.push_back(other.path);
    std::string nearest = nearestNames(module.path, children);
    StringRef what = *rule.style == Style::EmbeddingRowwise ? "is looked up"
                     : *rule.style == Style::Rowwise        ? "can be sharded by rows"
                                                            : "can be sharded by columns";
    error(rule, "module '" + Twine(module.path) + "' has no weight of its own that " + what +
                    (nearest.empty() ? "" : "; its parts are " + nearest));
  }

  const Plan &plan;
  const Mesh &mesh;
  const ModelNames &model;
  std::optional<unsigned> styleAxis;
  std::map<Key, std::vector<AxisState>> states;
  Resolution result;
};

} // namespace

Resolution resolvePlan(const Plan &plan, const Mesh &mesh, const ModelNames &model) {
  return Resolver(plan, mesh, model).run();
}

} // namespace shardc::plan

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/plan/Resolve.h"

#include "importers/plan/Styles.h"

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
    // A tensor is on one mesh: rules about axes of another have no effect on it.
    if (llvm::any_of(plan.rules, [](const Rule &rule) { return !rule.mesh.empty(); }))
      chooseMeshes();
    for (const Rule &rule : plan.rules)
      apply(rule);
    for (const Recomputed &entry : plan.recompute) {
      Rule rule{Section::Module, entry.pattern, std::nullopt, {}, false, entry.origin};
      matchModules(rule);
    }
    std::vector<bool> isDataAxis(mesh.numAxes());
    for (auto &[key, state] : states)
      for (unsigned a = 0; a < mesh.numAxes(); ++a)
        if (std::get<0>(key) == Target::Input && meshNameOf(key).empty() &&
            state[a].placement.isShard())
          isDataAxis[a] = true;
    for (auto &[key, state] : states)
      annotate(key, state, isDataAxis);
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

  void annotate(const Key &key, const std::vector<AxisState> &state,
                const std::vector<bool> &isDataAxis) {
    Annotation annotation{std::get<0>(key),
                          std::get<1>(key),
                          std::get<2>(key),
                          meshNameOf(key).str(),
                          Layout(meshOf(key)),
                          {},
                          {}};
    for (unsigned a = 0; a < state.size(); ++a) {
      bool isOpen = !state[a].rule && !annotation.mesh.empty();
      annotation.layout.placements[a] = isOpen ? Placement::replicate() : state[a].placement;
      annotation.origins.push_back(state[a].rule ? state[a].rule->origin : "");
      annotation.strengths.push_back(
          strengthOf(annotation.target, state[a], annotation.mesh.empty() && isDataAxis[a]));
    }
    if (!annotation.mesh.empty())
      for (const std::string &problem : annotation.layout.validate(shapes.at(key)))
        error(*meshRules.at(key), annotation.layout.str() + " on the mesh '" + annotation.mesh +
                                      "' does not fit: " + problem);
    result.annotations.push_back(std::move(annotation));
  }

  /// The mesh of a tensor by its name; empty for that of the program.
  StringRef meshNameOf(const Key &key) const {
    auto found = meshRules.find(key);
    return found == meshRules.end() ? StringRef() : StringRef(found->second->mesh);
  }
  const Mesh &meshOf(const Key &key) const { return *findMesh(meshNameOf(key)); }
  /// Null where there is no such mesh.
  const Mesh *findMesh(StringRef name) const {
    if (name.empty())
      return &mesh;
    auto found =
        llvm::find_if(plan.meshes, [&](const NamedMesh &other) { return other.name == name; });
    return found == plan.meshes.end() ? nullptr : &found->mesh;
  }

  void chooseMeshes() {
    for (const Rule &rule : plan.rules) {
      if (rule.section != Section::Input && rule.section != Section::Output)
        continue;
      isSilent = true; // what matches nothing is reported when the rule is applied
      std::vector<Subject> subjects = subjectsOf(rule);
      isSilent = false;
      for (const Subject &subject : subjects)
        chooseMesh(rule, subject);
    }
  }

  void apply(const Rule &rule) {
    checkAxes(rule);
    if (rule.section == Section::Module)
      return applyToModules(rule);
    for (const Subject &subject : subjectsOf(rule))
      if (findMesh(rule.mesh) && meshNameOf(subject.key) == rule.mesh)
        placeAll(rule, subject);
  }

  /// A rule on an exact name decides before a pattern, as about an axis.
  void chooseMesh(const Rule &rule, const Subject &subject) {
    if (!findMesh(rule.mesh))
      return;
    shapes.try_emplace(subject.key, subject.shape);
    auto [entry, isNew] = meshRules.try_emplace(subject.key, &rule);
    const Rule *old = entry->second;
    if (isNew || old->mesh == rule.mesh)
      return;
    if (precedence(*old) < precedence(rule))
      entry->second = &rule;
    else if (precedence(*old) == precedence(rule)) {
      auto name = [](const Rule &rule) {
        return rule.mesh.empty() ? std::string("the mesh of the program")
                                 : "the mesh '" + rule.mesh + "'";
      };
      error(rule, "'" + Twine(rule.pattern) + "' puts '" + subject.name + "' on " + name(rule) +
                      ", but '" + old->pattern + "' (" + old->origin + ") on " + name(*old));
    }
  }

  void error(const Rule &rule, const Twine &what) {
    if (!isSilent)
      result.errors.push_back(rule.origin + ": " + what.str());
  }

  std::string axisNames() const { return axisNames(mesh); }
  static std::string axisNames(const Mesh &mesh) {
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
  template <typename GetNames>
  static Matches find(const Rule &rule, unsigned count, GetNames getNames) {
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
    return found;
  }

  /// The same, and a report where there is none.
  template <typename GetNames> Matches match(const Rule &rule, unsigned count, GetNames getNames) {
    Matches found = find(rule, count, getNames);
    if (!found.entries.empty())
      return found;
    if (rule.isPasted) {
      result.remarks.push_back(rule.origin + ": '" + rule.pattern +
                               "' matches nothing of this model");
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

  std::string request(const Key &key, unsigned axis, const Placement &placement) const {
    return meshOf(key).axes[axis].name + ":" + placement.str();
  }

  void place(const Rule &rule, const Subject &subject, unsigned axis, Placement placement) {
    auto rank = static_cast<int64_t>(subject.shape.size());
    if (placement.isShard() && placement.dim < 0 && placement.dim + rank >= 0)
      placement.dim += rank; // from the end, as in PyTorch
    if (placement.isPartial() && std::get<0>(subject.key) == Target::Parameter)
      return error(rule, request(subject.key, axis, placement) + " does not fit '" + subject.name +
                             "': every rank loads a parameter or buffer from the file, so none has "
                             "a partial value; write " +
                             mesh.axes[axis].name + ":R for a whole copy on every rank, or " +
                             mesh.axes[axis].name + ":S(d) for a shard of dim d");
    const Mesh &mesh = meshOf(subject.key);
    Layout alone(mesh);
    alone.placements[axis] = placement;
    for (const std::string &problem : alone.validate(subject.shape, /*allowOpen=*/true))
      return error(rule, request(subject.key, axis, placement) + " does not fit '" + subject.name +
                             "': " + problem);
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
                         request(subject.key, axis, old.placement);
    std::string latter = "'" + asked.rule->pattern + "' asks for " +
                         request(subject.key, axis, asked.placement) + " on '";
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
        result.remarks.push_back(old.rule->origin + ": '" + old.via.front().str() +
                                 "' is tied to '" + name.str() +
                                 "': " + request(subject.key, axis, old.placement) + " replaces " +
                                 request(subject.key, axis, asked.placement) + " of '" +
                                 asked.rule->pattern + "' (" + asked.rule->origin + ") there too");
  }

  void placeAll(const Rule &rule, const Subject &subject) {
    const Mesh &mesh = meshOf(subject.key);
    if (!rule.mesh.empty()) // without an axis it replicates
      states.try_emplace(subject.key, mesh.numAxes());
    if (rule.replicateAll)
      for (unsigned a = 0; a < mesh.numAxes(); ++a)
        place(rule, subject, a, Placement::replicate());
    for (const AxisPlacement &p : rule.placements)
      if (auto axis = mesh.axisIndex(p.axis))
        place(rule, subject, *axis, p.placement);
  }

  void checkAxes(const Rule &rule) {
    const Mesh *own = findMesh(rule.mesh);
    if (!own) {
      std::vector<std::string> names;
      for (const NamedMesh &other : plan.meshes)
        names.push_back(other.name);
      return error(rule, "there is no mesh '" + Twine(rule.mesh) + "'" +
                             (names.empty() ? "; name it in the plan (meshes: {" + rule.mesh +
                                                  ": {io: 2, devices: [4, 5]}}) or on the command "
                                                  "line (--other-mesh " +
                                                  rule.mesh + ":io=2,devices=[4,5])"
                                            : "; the meshes are " + llvm::join(names, ", ")));
    }
    for (const AxisPlacement &p : rule.placements)
      if (!own->axisIndex(p.axis))
        error(rule, "the mesh" + (rule.mesh.empty() ? Twine() : " '" + Twine(rule.mesh) + "'") +
                        " has no axis '" + p.axis + "'; it has " + axisNames(*own));
  }

  /// The tensors that a rule speaks of.
  std::vector<Subject> subjectsOf(const Rule &rule) {
    const auto &[tensors, target] =
        rule.section == Section::Parameter ? std::pair(&model.parameters, Target::Parameter)
        : rule.section == Section::Input   ? std::pair(&model.inputs, Target::Input)
                                           : std::pair(&model.outputs, Target::Output);
    const auto &list = *tensors;
    // Inputs and outputs are also known by their position.
    unsigned position = 0;
    if (rule.section != Section::Parameter && !StringRef(rule.pattern).getAsInteger(10, position)) {
      size_t count = rule.section == Section::Output ? model.numReturned : list.size();
      if (position >= count) {
        error(rule, "there is no " + sectionName(rule.section) + " " + Twine(position) +
                        "; the model has " + Twine(count));
        return {};
      }
      return {{{target, position, 0}, list[position].names.front(), list[position].shape, {}}};
    }
    std::vector<Subject> subjects;
    Matches found = match(rule, list.size(), [&](unsigned i) -> auto & { return list[i].names; });
    for (unsigned i : found.entries)
      if (!list[i].isBuffer || !hasWildcard(rule.pattern)) {
        auto isMeant = [&](StringRef name) { return matchesPattern(found.pattern, name); };
        subjects.push_back({{target, i, 0},
                            list[i].names.front(),
                            list[i].shape,
                            target == Target::Parameter ? tiedNames(list[i], isMeant) : Via()});
      }
    return subjects;
  }

  std::vector<std::string> pathOf(unsigned module) const { return {model.modules[module].path}; }
  Matches findModules(const Rule &rule) const {
    return find(rule, model.modules.size(), [&](unsigned i) { return pathOf(i); });
  }
  Matches matchModules(const Rule &rule) {
    return match(rule, model.modules.size(), [&](unsigned i) { return pathOf(i); });
  }

  void applyToModules(const Rule &rule) {
    if (rule.style && applyToParameters(rule))
      return;
    Matches matched = matchModules(rule);
    if (rule.style && (*rule.style == Style::Unchanged || !hasAxis(rule)))
      return;
    for (unsigned m : matched.entries) {
      const ModuleBoundary &module = model.modules[m];
      if (rule.style)
        applyStyle(rule, m);
      else
        for (unsigned v = 0; v < module.outputs.size(); ++v)
          placeAll(rule, {{Target::ModuleOutput, m, v}, module.path, module.outputs[v], {}});
    }
  }

  /// The axis that the style of a rule acts on.
  std::optional<unsigned> axisOf(const Rule &rule) const {
    if (rule.isOfExperts || rule.style == Style::Experts)
      if (std::optional<unsigned> ep = mesh.axisIndex("ep"))
        return ep;
    return styleAxis;
  }

  /// Whether there is an axis that the style of a rule acts on, and a report where there is none.
  bool hasAxis(const Rule &rule) {
    if (axisOf(rule))
      return true;
    if (plan.tpAxis.empty())
      error(rule, "which mesh axis does the style of '" + Twine(rule.pattern) +
                      "' act on? Name one tp, or set tp_axis; the axes are " + axisNames());
    return false;
  }

  /// Plans of Hugging Face's name bare parameters (weights of all experts in one tensor, attention
  /// sinks) among modules. False where the rule names no parameter.
  bool applyToParameters(const Rule &rule) {
    const auto &list = model.parameters;
    auto namesOf = [&](unsigned i) -> auto & { return list[i].names; };
    // A pattern that modules match means them alone.
    if (!findModules(rule).entries.empty())
      return false;
    Matches found = find(rule, list.size(), namesOf);
    // Buffers are meant by their exact names only.
    if (hasWildcard(rule.pattern))
      llvm::erase_if(found.entries, [&](unsigned i) { return list[i].isBuffer; });
    if (found.entries.empty())
      return false;
    if (*rule.style == Style::Unchanged || !hasAxis(rule))
      return true;
    for (unsigned i : found.entries) {
      auto isMeant = [&](StringRef name) { return matchesPattern(found.pattern, name); };
      if (std::optional<Placement> placement = placementOfBare(*rule.style, list[i]))
        place(rule,
              {{Target::Parameter, i, 0},
               list[i].names.front(),
               list[i].shape,
               tiedNames(list[i], isMeant)},
              *axisOf(rule), *placement);
    }
    return true;
  }

  void placeBoundary(const Rule &rule, Target target, unsigned m, const Placement &placement) {
    const ModuleBoundary &module = model.modules[m];
    const auto &shapes = target == Target::ModuleInput ? module.inputs : module.outputs;
    for (unsigned v = 0; v < shapes.size(); ++v)
      place(rule, {{target, m, v}, module.path, shapes[v], {}}, *axisOf(rule), placement);
  }

  void applyStyle(const Rule &rule, unsigned m) {
    const ModuleBoundary &module = model.modules[m];
    if (*rule.style == Style::Sequence) {
      placeBoundary(rule, Target::ModuleInput, m, Placement::shard(1));
      placeBoundary(rule, Target::ModuleOutput, m, Placement::shard(1));
    }
    bool any = !shards(*rule.style);
    for (const ModuleParameter &own : module.parameters) {
      const NamedTensor &parameter = model.parameters[own.index];
      if (parameter.isBuffer)
        continue;
      std::optional<int64_t> dim = shardedDim(*rule.style, own.roles, parameter.shape.size());
      any |= dim.has_value();
      auto isMeant = [&](StringRef name) { return name.rsplit('.').first == module.path; };
      // The bias of a row-parallel layer and the weights of a norm are whole on every rank.
      place(rule,
            {{Target::Parameter, own.index, 0},
             parameter.names.front(),
             parameter.shape,
             tiedNames(parameter, isMeant)},
            *axisOf(rule), dim ? Placement::shard(*dim) : Placement::replicate());
    }
    if (!any)
      error(rule, nothingToShard(*rule.style, module, model, mesh.axes[*axisOf(rule)].name));
    if (*rule.style == Style::ColwiseGatherOutput)
      placeBoundary(rule, Target::ModuleOutput, m, Placement::replicate());
  }

  const Plan &plan;
  const Mesh &mesh;
  const ModelNames &model;
  std::optional<unsigned> styleAxis;
  bool isSilent = false;
  std::map<Key, std::vector<AxisState>> states;
  std::map<Key, const Rule *> meshRules; ///< who says on which mesh a tensor is
  std::map<Key, std::vector<int64_t>> shapes;
  Resolution result;
};

} // namespace

Resolution resolvePlan(const Plan &plan, const Mesh &mesh, const ModelNames &model) {
  return Resolver(plan, mesh, model).run();
}

} // namespace shardc::plan

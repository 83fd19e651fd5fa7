// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/manifest/Manifest.h"

#include "runtime/support/Failure.h"
#include "runtime/support/Types.h"
#include "support/Json.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace shardc::rt {

using shardc::JsonValue;

namespace {

/// Reads values by path and collects what is wrong, so that a bad manifest is reported at once.
class Reader {
public:
  Problems problems;

  void wrong(const std::string &path, const std::string &expected) {
    problems.add(path + ": expected " + expected);
  }
  std::string text(JsonValue parent, const std::string &path, const char *key) {
    auto value = parent[key].string();
    if (!value)
      wrong(path + "." + key, "a string");
    return std::string(value.value_or(""));
  }
  int64_t integer(JsonValue parent, const std::string &path, const char *key) {
    auto value = parent[key].integer();
    if (!value)
      wrong(path + "." + key, "an integer");
    return value.value_or(0);
  }
  /// Calls `each(element, path)` for an array; a missing one is an error if required.
  template <typename Each>
  void array(JsonValue parent, const std::string &path, const char *key, bool required, Each each) {
    JsonValue value = parent[key];
    std::string here = path.empty() ? key : path + "." + key;
    if (!value.isArray()) {
      if (required || value.exists())
        wrong(here, "an array");
      return;
    }
    size_t i = 0;
    for (JsonValue element : value.elements())
      each(element, here + "[" + std::to_string(i++) + "]");
  }
  std::vector<std::string> strings(JsonValue parent, const std::string &path, const char *key,
                                   bool required) {
    std::vector<std::string> out;
    array(parent, path, key, required, [&](JsonValue element, const std::string &here) {
      if (auto value = element.string())
        out.emplace_back(*value);
      else
        wrong(here, "a string");
    });
    return out;
  }

  shardc::Mesh mesh(JsonValue value, const std::string &path, const Manifest &m);
  void meshes(JsonValue root, Manifest &m);
  void symbols(JsonValue root, Manifest &m);
  Expression expression(JsonValue value, const std::string &path, const Manifest &m);
  void tensor(JsonValue value, const std::string &path, const Manifest &m, TensorSpec &spec);
  void parameters(JsonValue root, Manifest &m);
  void source(JsonValue value, const std::string &path, ParameterSpec &spec);
  void entries(JsonValue root, Manifest &m);
  void training(JsonValue root, Manifest &m);
};

shardc::Mesh Reader::mesh(JsonValue value, const std::string &path, const Manifest &m) {
  shardc::Mesh mesh;
  array(value, path, "axes", true, [&](JsonValue axis, const std::string &here) {
    mesh.axes.push_back({text(axis, here, "name"), integer(axis, here, "size")});
  });
  array(value, path, "devices", false, [&](JsonValue device, const std::string &here) {
    if (auto id = device.integer())
      mesh.deviceIds.push_back(*id);
    else
      wrong(here, "an integer");
  });
  std::vector<std::string> invalid = mesh.validate();
  problems.add(invalid, path + ": ");
  if (!invalid.empty())
    return mesh;
  if (mesh.numDevices() > m.worldSize)
    problems.add("world_size: " + std::to_string(m.worldSize) +
                 " ranks are too few for a mesh of " + std::to_string(mesh.numDevices()));
  for (int64_t device : mesh.deviceIds)
    if (device < 0 || device >= m.worldSize)
      problems.add(path + ".devices: rank " + std::to_string(device) + " is outside the world");
  return mesh;
}

void Reader::meshes(JsonValue root, Manifest &m) {
  if (root["mesh"].isObject())
    m.mesh = mesh(root["mesh"], "mesh", m);
  else
    wrong("mesh", "an object");
  array(root, "", "meshes", false, [&](JsonValue value, const std::string &path) {
    m.meshes.push_back({text(value, path, "name"), mesh(value, path, m)});
  });
}

void Reader::symbols(JsonValue root, Manifest &m) {
  array(root, "", "symbols", false, [&](JsonValue symbol, const std::string &path) {
    SymbolSpec spec{text(symbol, path, "name"), integer(symbol, path, "min")};
    if (symbol["max"].exists())
      spec.max = integer(symbol, path, "max");
    if (spec.min > spec.max || spec.min < 0)
      wrong(path, "0 <= min <= max");
    if (std::find(m.symbolNames.begin(), m.symbolNames.end(), spec.name) != m.symbolNames.end())
      problems.add(path + ": the symbol " + spec.name + " occurs twice");
    m.symbolNames.push_back(spec.name);
    m.symbols.push_back(std::move(spec));
  });
  array(root, "", "constraints", false, [&](JsonValue constraint, const std::string &path) {
    constexpr std::pair<const char *, ConstraintSpec::Relation> relations[] = {
        {"==", ConstraintSpec::Relation::Equal},        {"!=", ConstraintSpec::Relation::NotEqual},
        {"<=", ConstraintSpec::Relation::LessEqual},    {"<", ConstraintSpec::Relation::Less},
        {">=", ConstraintSpec::Relation::GreaterEqual}, {">", ConstraintSpec::Relation::Greater}};
    ConstraintSpec spec;
    spec.left = expression(constraint["left"], path + ".left", m);
    spec.right = expression(constraint["right"], path + ".right", m);
    std::string relation = text(constraint, path, "relation");
    bool known = false;
    for (auto &[name, value] : relations)
      if (relation == name) {
        spec.relation = value;
        known = true;
      }
    if (!known)
      wrong(path + ".relation", "one of == != <= < >= >");
    spec.text = spec.left.str(m.symbolNames) + " " + relation + " " + spec.right.str(m.symbolNames);
    m.constraints.push_back(std::move(spec));
  });
}

Expression Reader::expression(JsonValue value, const std::string &path, const Manifest &m) {
  if (auto number = value.integer())
    return Expression::constant(*number);
  if (auto name = value.string()) {
    auto found = std::find(m.symbolNames.begin(), m.symbolNames.end(), *name);
    if (found != m.symbolNames.end())
      return Expression::symbol(size_t(found - m.symbolNames.begin()));
    wrong(path, "a symbol, but " + std::string(*name) + " is none");
    return Expression::constant(0);
  }
  if (value.isArray() && value.size() == 3) {
    std::vector<JsonValue> parts;
    for (JsonValue part : value.elements())
      parts.push_back(part);
    auto kind = Expression::operatorNamed(parts[0].string().value_or(""));
    if (kind) {
      // Two evaluations whose order matters for messages.
      Expression left = expression(parts[1], path + "[1]", m);
      Expression right = expression(parts[2], path + "[2]", m);
      return {*kind, 0, {std::move(left), std::move(right)}};
    }
  }
  wrong(path, "an integer, a symbol or [operator, left, right]");
  return Expression::constant(0);
}

void Reader::tensor(JsonValue value, const std::string &path, const Manifest &m, TensorSpec &spec) {
  std::string type = text(value, path, "type");
  spec.type = typeFromName(type);
  if (spec.type == 0)
    wrong(path + ".type", "an element type");
  array(value, path, "shape", true, [&](JsonValue dim, const std::string &here) {
    spec.shape.push_back(expression(dim, here, m));
    if (spec.shape.back().isConstant() && spec.shape.back().value < 0)
      wrong(here, "an extent that is not negative");
  });
  if (spec.rank() > SHARDRT_MAX_RANK)
    wrong(path + ".shape", "at most " + std::to_string(SHARDRT_MAX_RANK) + " dims");
  const shardc::Mesh *mesh = &m.mesh;
  if (value["mesh"].exists()) {
    std::string name = text(value, path, "mesh");
    auto known = std::find_if(m.meshes.begin(), m.meshes.end(),
                              [&](const MeshSpec &other) { return other.name == name; });
    if (known == m.meshes.end())
      return wrong(path + ".mesh", "the name of one of meshes, but " + name + " is none");
    spec.mesh = size_t(known - m.meshes.begin()) + 1;
    mesh = &known->mesh;
  }
  shardc::Parsed<shardc::Layout> layout = shardc::parseLayout(*mesh, text(value, path, "layout"));
  if (!layout) {
    problems.add(path + ".layout: " + layout.error);
    return;
  }
  spec.layout = std::move(*layout.value);
  std::vector<int64_t> shape;
  for (const Expression &dim : spec.shape)
    shape.push_back(dim.isConstant() ? dim.value : shardc::kDynamic);
  problems.add(spec.layout.validate(shape), path + ".layout: ");
}

void Reader::parameters(JsonValue root, Manifest &m) {
  std::set<std::string> seen;
  array(root, "", "parameters", true, [&](JsonValue value, const std::string &path) {
    ParameterSpec spec;
    spec.names = strings(value, path, "names", true);
    if (spec.names.empty())
      return wrong(path + ".names", "at least one name");
    spec.name = spec.names.front();
    for (const std::string &name : spec.names)
      if (!seen.insert(name).second)
        problems.add(path + ".names: " + name + " belongs to two parameters");
    tensor(value, path, m, spec);
    for (const Expression &dim : spec.shape)
      if (!dim.isConstant())
        wrong(path + ".shape", "integers");
    if (spec.mesh != 0)
      wrong(path + ".mesh", "none: parameters are on the program's own mesh");
    if (value["source"].exists())
      source(value, path, spec);
    if (spec.layout.hasPartial() && (!spec.isState() || spec.isSaved))
      problems.add(path + ".layout: " + spec.layout.str() +
                   " is partial, but every rank loads a parameter from the file: it is whole or a "
                   "shard");
    if (value["mutable"].exists() && !value["mutable"].boolean())
      wrong(path + ".mutable", "true or false");
    spec.isMutable = value["mutable"].boolean().value_or(false);
    m.parameters.push_back(std::move(spec));
  });
}

void Reader::source(JsonValue value, const std::string &path, ParameterSpec &spec) {
  std::string source = text(value, path, "source");
  spec.isConstant = source == "constant";
  if (source == "state") {
    spec.initial = value["initial"].real();
    if (!spec.initial)
      wrong(path + ".initial", "a number");
    if (value["saved"].exists() && !value["saved"].boolean())
      wrong(path + ".saved", "true or false");
    spec.isSaved = value["saved"].boolean().value_or(true);
    if (spec.layout.hasPartial() && spec.initial != 0)
      wrong(path + ".initial", "0 of a sum that ranks hold parts of");
  } else if (!spec.isConstant && source != "weights") {
    wrong(path + ".source", "weights, constant or state");
  }
}

void Reader::entries(JsonValue root, Manifest &m) {
  std::unordered_map<std::string, size_t> parameterIndex;
  for (size_t i = 0; i < m.parameters.size(); ++i)
    for (const std::string &name : m.parameters[i].names)
      parameterIndex.emplace(name, i);
  array(root, "", "entries", true, [&](JsonValue value, const std::string &path) {
    EntrySpec entry;
    entry.name = text(value, path, "name");
    std::unordered_set<std::string> inputNames, outputNames;
    array(value, path, "inputs", true, [&](JsonValue input, const std::string &here) {
      TensorSpec &spec = entry.inputs.emplace_back();
      spec.name = text(input, here, "name");
      if (!inputNames.insert(spec.name).second)
        problems.add(here + ": another input is called " + spec.name + " too");
      tensor(input, here, m, spec);
    });
    array(value, path, "outputs", true, [&](JsonValue output, const std::string &here) {
      OutputSpec &spec = entry.outputs.emplace_back();
      spec.name = text(output, here, "name");
      tensor(output, here, m, spec);
      std::string kind = text(output, here, "kind");
      if (kind == "user") {
        entry.userOutputs.push_back(entry.outputs.size() - 1);
        if (!outputNames.insert(spec.name).second)
          problems.add(here + ": another output is called " + spec.name + " too");
        return;
      }
      if (kind != "state")
        return wrong(here + ".kind", "user or state");
      std::string target = text(output, here, "updates");
      auto found = parameterIndex.find(target);
      if (found == parameterIndex.end())
        return wrong(here + ".updates", "the name of a parameter");
      spec.updates = found->second;
      const ParameterSpec &parameter = m.parameters[found->second];
      bool sameShape = spec.rank() == parameter.rank();
      for (size_t d = 0; sameShape && d < spec.rank(); ++d)
        sameShape = spec.shape[d].isConstant() && spec.shape[d].value == parameter.shape[d].value;
      if (!parameter.isMutable || parameter.type != spec.type || !sameShape ||
          !(parameter.layout == spec.layout))
        problems.add(here + ": type, shape and layout must be those of " + target +
                     ", which must be mutable");
    });
    if (value["reads_parameters"].exists() && !value["reads_parameters"].boolean())
      wrong(path + ".reads_parameters", "true or false");
    entry.readsParameters = value["reads_parameters"].boolean().value_or(true);
    m.entries.push_back(std::move(entry));
  });
  if (m.entries.empty())
    wrong("entries", "at least one entry");
}

void Reader::training(JsonValue root, Manifest &m) {
  JsonValue value = root["training"];
  if (!value.exists())
    return;
  const std::string path = "training";
  if (!value.isObject())
    return wrong(path, "an object");
  TrainingSpec spec;
  auto optional = [&](const char *key) {
    return value[key].exists() ? text(value, path, key) : std::string();
  };
  spec.step = text(value, path, "step");
  spec.accumulate = optional("accumulate");
  spec.init = optional("init");
  spec.microBatches = value["micro_batches"].exists() ? integer(value, path, "micro_batches") : 1;
  spec.loss = text(value, path, "loss");
  spec.learningRate = text(value, path, "learning_rate");
  spec.gradNorm = optional("grad_norm");
  spec.skipped = optional("skipped");
  spec.nonFinite = text(value, path, "non_finite");
  spec.lossScale = optional("loss_scale");
  auto entryOf = [&](const std::string &name) {
    auto found = std::find_if(m.entries.begin(), m.entries.end(),
                              [&](const EntrySpec &entry) { return entry.name == name; });
    return found == m.entries.end() ? nullptr : &*found;
  };
  const EntrySpec *step = entryOf(spec.step);
  if (!step)
    return wrong(path + ".step", "the name of an entry");
  auto has = [](const auto &specs, const std::string &name) {
    return std::any_of(specs.begin(), specs.end(),
                       [&](const TensorSpec &one) { return one.name == name; });
  };
  if (spec.microBatches < 1 || (spec.microBatches > 1) != !spec.accumulate.empty())
    wrong(path + ".micro_batches", "a positive number, of 1 exactly where nothing accumulates");
  if (!spec.accumulate.empty() && !entryOf(spec.accumulate))
    wrong(path + ".accumulate", "the name of an entry");
  const EntrySpec *init = entryOf(spec.init);
  if (!spec.init.empty() && (!init || !init->inputs.empty() || init->readsParameters))
    wrong(path + ".init", "the name of an entry without inputs that reads no parameters");
  if (!has(step->inputs, spec.learningRate))
    wrong(path + ".learning_rate", "the name of an input of " + spec.step);
  for (auto &[key, name] : {std::pair("loss", spec.loss), std::pair("grad_norm", spec.gradNorm),
                            std::pair("skipped", spec.skipped)})
    if (!name.empty() && !has(step->outputs, name))
      wrong(path + "." + key, "the name of an output of " + spec.step);
  bool hasScale = std::any_of(m.parameters.begin(), m.parameters.end(),
                              [&](const auto &state) { return state.name == spec.lossScale; });
  if (!spec.lossScale.empty() && !hasScale)
    wrong(path + ".loss_scale", "the name of a state");
  m.training = std::move(spec);
}

} // namespace

Manifest Manifest::parse(std::string_view json) {
  std::string error;
  std::optional<shardc::JsonDocument> document = shardc::JsonDocument::parse(json, error);
  if (!document)
    throw Failure(SHARDRT_BAD_FILE, "the artifact's manifest is not JSON: " + error);
  JsonValue root = document->root();
  if (!root.isObject())
    throw Failure(SHARDRT_BAD_FILE, "the artifact's manifest is not a JSON object");
  if (auto format = root["format"].integer(); format != 1)
    throw Failure(SHARDRT_INCOMPATIBLE,
                  "the artifact's manifest has format " +
                      (format ? std::to_string(*format) : std::string("unknown")) +
                      ", this runtime reads format 1");
  Reader reader;
  Manifest m;
  m.tool = reader.text(root, "", "tool");
  m.name = reader.text(root, "", "name");
  m.artifactHash = reader.text(root, "", "artifact_hash");
  m.sequenceHash = reader.text(root, "", "sequence_hash");
  m.targetKind = reader.text(root["target"], "target", "kind");
  m.triple = reader.text(root["target"], "target", "triple");
  m.cpu = reader.text(root["target"], "target", "cpu");
  m.features = reader.strings(root["target"], "target", "features", true);
  m.chips = reader.strings(root["target"], "target", "chips", false);
  m.isEmulated = root["target"]["emulated"].boolean().value_or(false);
  if (root["target"]["emulated"].exists() && !root["target"]["emulated"].boolean())
    reader.wrong("target.emulated", "true or false");
  m.worldSize = reader.integer(root, "", "world_size");
  if (m.worldSize < 1 || m.worldSize > INT32_MAX)
    reader.wrong("world_size", "a positive integer");
  m.ignoredParameters = reader.strings(root, "", "ignored_parameters", false);
  m.libraries = reader.strings(root, "", "libraries", false);
  reader.meshes(root, m);
  reader.symbols(root, m);
  // Layouts are checked against the mesh: with a bad one their messages would be noise.
  if (reader.problems.empty()) {
    reader.parameters(root, m);
    reader.entries(root, m);
    reader.training(root, m);
  }
  reader.problems.raise(SHARDRT_BAD_FILE, "the artifact's manifest");
  return m;
}

Coordinates Manifest::coordinatesOf(int64_t rank) const {
  Coordinates coordinates{mesh.coordinateOf(rank)};
  for (const MeshSpec &other : meshes)
    coordinates.push_back(other.mesh.coordinateOf(rank));
  return coordinates;
}

std::vector<int64_t> ParameterSpec::extents() const {
  std::vector<int64_t> out;
  for (const Expression &dim : shape)
    out.push_back(dim.value);
  return out;
}

bool ConstraintSpec::holds(int64_t a, int64_t b) const {
  switch (relation) {
  case Relation::Equal:
    return a == b;
  case Relation::NotEqual:
    return a != b;
  case Relation::LessEqual:
    return a <= b;
  case Relation::Less:
    return a < b;
  case Relation::GreaterEqual:
    return a >= b;
  default:
    return a > b;
  }
}

bool matchesPattern(std::string_view pattern, std::string_view text) {
  // The last * and where its match began: on a mismatch it takes one more character.
  size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*')
    ++p;
  return p == pattern.size();
}

} // namespace shardc::rt

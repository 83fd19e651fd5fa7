// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/model/Binding.h"

#include "runtime/support/Copy.h"
#include "runtime/support/Failure.h"
#include "runtime/support/Types.h"

#include <algorithm>
#include <limits>

namespace shardc::rt {

namespace {

/// "[8, s0]" for a message about what is expected.
std::string expected(const TensorSpec &spec, const Manifest &manifest) {
  std::string text = std::string(typeName(spec.type)) + "[";
  for (size_t d = 0; d < spec.rank(); ++d)
    text += (d ? ", " : "") + spec.shape[d].str(manifest.symbolNames);
  return text + "]";
}

/// Type, rank, extents that are not negative. Returns false where nothing more can be said.
bool checkTensor(const std::string &here, const TensorSpec &spec, const shardrt_tensor &tensor,
                 Problems &problems) {
  if (tensor.rank < 0 || tensor.rank > SHARDRT_MAX_RANK || (tensor.rank > 0 && !tensor.extents)) {
    problems.add(here + "its rank is " + std::to_string(tensor.rank) + " or its extents are null");
    return false;
  }
  std::string given = describe(tensor.type, tensor.extents, size_t(tensor.rank));
  if (tensor.type != spec.type)
    problems.add(here + "it is " + given + ", expected element type " + typeName(spec.type));
  if (size_t(tensor.rank) != spec.rank()) {
    problems.add(here + "it is " + given + ", expected " + std::to_string(spec.rank()) + " dims");
    return false;
  }
  int64_t bytes = std::max<int64_t>(typeBytes(tensor.type), 1);
  if (checkedBytes(tensor.extents, size_t(tensor.rank), bytes) < 0) {
    problems.add(here + "it is " + given + ": negative or too large");
    return false;
  }
  return true;
}

void checkData(const std::string &here, const shardrt_tensor &tensor, Problems &problems) {
  if (!tensor.data && countElements(tensor.extents, size_t(tensor.rank)) > 0)
    problems.add(here + "its data is null");
}

/// The global extents as far as they can be told from what the caller gave; nothing for a dim of
/// a local tensor that does not tell.
std::vector<std::optional<int64_t>> globalExtents(const TensorSpec &spec,
                                                  const shardrt_tensor &tensor, bool isInMesh) {
  std::vector<std::optional<int64_t>> out(spec.rank());
  for (size_t d = 0; d < spec.rank(); ++d) {
    if (tensor.scope != SHARDRT_LOCAL)
      out[d] = tensor.extents[d];
    else if (tensor.global_extents)
      out[d] = tensor.global_extents[d];
    else if (isInMesh && spec.layout.splitOfDim(int64_t(d)).empty())
      out[d] = tensor.extents[d];
  }
  return out;
}

struct Binder {
  const Manifest &manifest;
  const EntrySpec &entry;
  std::vector<std::optional<int64_t>> values;
  std::vector<std::string> definedBy; ///< "dim 1 of input x", by symbol

  std::string place(size_t input, size_t dim) const {
    return "dim " + std::to_string(dim) + " of input " + entry.inputs[input].name;
  }

  /// Solves dims for symbols until nothing new is found: at most one pass per symbol.
  void solve(const std::vector<std::vector<std::optional<int64_t>>> &extents) {
    bool progress = true;
    while (progress) {
      progress = false;
      for (size_t i = 0; i < extents.size(); ++i)
        for (size_t d = 0; d < extents[i].size(); ++d) {
          if (!extents[i][d])
            continue;
          auto solution = entry.inputs[i].shape[d].solve(*extents[i][d], values);
          if (!solution)
            continue;
          values[solution->symbol] = solution->value;
          definedBy[solution->symbol] = place(i, d);
          progress = true;
        }
    }
  }

  std::string valuesText(const Expression &expression) const {
    std::string text;
    for (size_t s = 0; s < values.size(); ++s)
      if (values[s] && mentions(expression, s))
        text += (text.empty() ? " where " : ", ") + manifest.symbolNames[s] + " = " +
                std::to_string(*values[s]) + " by " + definedBy[s];
    return text;
  }
  static bool mentions(const Expression &expression, size_t symbol) {
    if (expression.kind == Expression::Kind::Symbol)
      return size_t(expression.value) == symbol;
    return std::any_of(expression.operands.begin(), expression.operands.end(),
                       [&](const Expression &e) { return mentions(e, symbol); });
  }

  void checkDims(const std::vector<std::vector<std::optional<int64_t>>> &extents,
                 Problems &problems) const {
    for (size_t i = 0; i < extents.size(); ++i)
      for (size_t d = 0; d < extents[i].size(); ++d) {
        const Expression &dim = entry.inputs[i].shape[d];
        if (!extents[i][d]) {
          if (!dim.isConstant())
            problems.add(place(i, d) + " is dynamic and sharded: a local tensor must come with "
                                       "global_extents");
          continue;
        }
        std::optional<int64_t> wanted = dim.evaluate(values);
        if (wanted && *wanted != *extents[i][d])
          problems.add(place(i, d) + " is " + std::to_string(*extents[i][d]) + ", expected " +
                       (dim.isConstant() ? std::to_string(*wanted)
                                         : dim.str(manifest.symbolNames) + " = " +
                                               std::to_string(*wanted) + valuesText(dim)));
        else if (!wanted)
          problems.add(place(i, d) + " is " + std::to_string(*extents[i][d]) + ", which " +
                       dim.str(manifest.symbolNames) + " cannot be");
      }
  }

  void checkSymbols(Problems &problems) const {
    for (size_t s = 0; s < values.size(); ++s) {
      const SymbolSpec &spec = manifest.symbols[s];
      if (values[s] && (*values[s] < spec.min || *values[s] > spec.max))
        problems.add(definedBy[s] + ": " + spec.name + " = " + std::to_string(*values[s]) +
                     (spec.max == std::numeric_limits<int64_t>::max()
                          ? " is less than " + std::to_string(spec.min)
                          : " is outside its range " + std::to_string(spec.min) + " to " +
                                std::to_string(spec.max)));
    }
    for (const ConstraintSpec &constraint : manifest.constraints) {
      auto left = constraint.left.evaluate(values), right = constraint.right.evaluate(values);
      if (left && right && !constraint.holds(*left, *right))
        problems.add("the program needs " + constraint.text + valuesText(constraint.left) +
                     valuesText(constraint.right));
    }
  }
};

/// Symbols that an entry does not use (another entry does) have no value; they count as their
/// minimum, which nothing reads.
bool usesSymbol(const EntrySpec &entry, size_t symbol) {
  auto uses = [&](const TensorSpec &spec) {
    return std::any_of(spec.shape.begin(), spec.shape.end(),
                       [&](const Expression &e) { return Binder::mentions(e, symbol); });
  };
  return std::any_of(entry.inputs.begin(), entry.inputs.end(), uses) ||
         std::any_of(entry.outputs.begin(), entry.outputs.end(), uses);
}

std::string inputsOf(const EntrySpec &entry) { return "inputs of " + entry.name; }
std::string outputsOf(const EntrySpec &entry) { return "outputs of " + entry.name; }

} // namespace

void checkInputCount(const EntrySpec &entry, size_t count) {
  if (count == entry.inputs.size())
    return;
  std::string names;
  for (const TensorSpec &spec : entry.inputs)
    names += (names.empty() ? "" : ", ") + spec.name;
  throw Failure(SHARDRT_INVALID_ARGUMENT,
                inputsOf(entry) + ": " + std::to_string(count) + " given, expected " +
                    std::to_string(entry.inputs.size()) + " (" + names + ")");
}

void checkOutputCount(const EntrySpec &entry, size_t count) {
  if (count != entry.userOutputs.size())
    throw Failure(SHARDRT_INVALID_ARGUMENT, outputsOf(entry) + ": " + std::to_string(count) +
                                                " given, expected " +
                                                std::to_string(entry.userOutputs.size()));
}

SymbolValues bindSymbols(const Manifest &manifest, const EntrySpec &entry,
                         std::span<const shardrt_tensor> inputs, const Coordinates &coordinates,
                         bool withData) {
  checkInputCount(entry, inputs.size());
  Problems problems;
  const std::string headline = inputsOf(entry);
  Binder binder{manifest, entry, {}, {}};
  binder.values.resize(manifest.symbols.size());
  binder.definedBy.resize(manifest.symbols.size());
  std::vector<std::vector<std::optional<int64_t>>> extents(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorSpec &spec = entry.inputs[i];
    std::string here = "input " + spec.name + ": ";
    if (inputs[i].scope == SHARDRT_ROOT && spec.rank() > 0 && !inputs[i].extents) {
      problems.add(here + "only rank 0 has it (SHARDRT_ROOT): ask rank 0, or give its extents");
      continue;
    }
    if (!checkTensor(here, spec, inputs[i], problems))
      continue;
    if (withData && inputs[i].scope != SHARDRT_ROOT)
      checkData(here, inputs[i], problems);
    if (inputs[i].scope != SHARDRT_LOCAL && inputs[i].scope != SHARDRT_GLOBAL &&
        inputs[i].scope != SHARDRT_ROOT) {
      problems.add(here + "its scope is " + std::to_string(inputs[i].scope) +
                   ", expected SHARDRT_LOCAL, SHARDRT_GLOBAL or SHARDRT_ROOT");
      continue;
    }
    if (inputs[i].scope != SHARDRT_LOCAL && spec.layout.hasPartial()) {
      problems.add(here + "it is partial (" + spec.layout.str() +
                   "): pass each rank's part, a local tensor (shard-run --local)");
      continue;
    }
    extents[i] = globalExtents(spec, inputs[i], coordinates[spec.mesh].has_value());
  }
  binder.solve(extents);
  binder.checkDims(extents, problems);
  binder.checkSymbols(problems);
  SymbolValues symbols;
  for (size_t s = 0; s < manifest.symbols.size(); ++s) {
    if (!binder.values[s] && problems.empty() && usesSymbol(entry, s))
      problems.add("no input determines the symbol " + manifest.symbolNames[s]);
    symbols.push_back(binder.values[s].value_or(manifest.symbols[s].min));
  }
  problems.raise(SHARDRT_INVALID_ARGUMENT, headline);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].scope != SHARDRT_LOCAL)
      continue;
    const TensorSpec &spec = entry.inputs[i];
    Slice slice = Slice::make(spec.layout, evaluateShape(spec, symbols), coordinates[spec.mesh]);
    if (!std::equal(slice.local.begin(), slice.local.end(), inputs[i].extents))
      problems.add("input " + spec.name + ": it is " +
                   describe(inputs[i].type, inputs[i].extents, spec.rank()) +
                   ", this rank's shard of " + expected(spec, manifest) + " is " +
                   describe(spec.type, slice.local));
  }
  problems.raise(SHARDRT_INVALID_ARGUMENT, headline);
  return symbols;
}

std::vector<int64_t> evaluateShape(const TensorSpec &spec, const SymbolValues &symbols) {
  std::vector<std::optional<int64_t>> values(symbols.begin(), symbols.end());
  std::vector<int64_t> extents;
  for (const Expression &dim : spec.shape) {
    std::optional<int64_t> value = dim.evaluate(values);
    if (!value || *value < 0)
      throw Failure(SHARDRT_INVALID_ARGUMENT,
                    spec.name + ": an extent cannot be computed from these inputs");
    extents.push_back(*value);
  }
  if (checkedBytes(extents.data(), extents.size(), typeBytes(spec.type)) < 0)
    throw Failure(SHARDRT_INVALID_ARGUMENT,
                  spec.name + ": " + describe(spec.type, extents) + " is too large");
  return extents;
}

Shapes evaluateShapes(const EntrySpec &entry, const SymbolValues &symbols,
                      const Coordinates &coordinates) {
  Shapes shapes;
  for (const TensorSpec &spec : entry.inputs)
    shapes.inputs.push_back(
        Slice::make(spec.layout, evaluateShape(spec, symbols), coordinates[spec.mesh]));
  for (const OutputSpec &spec : entry.outputs)
    shapes.outputs.push_back(
        Slice::make(spec.layout, evaluateShape(spec, symbols), coordinates[spec.mesh]));
  return shapes;
}

void checkOutputs(const EntrySpec &entry, const Shapes &shapes,
                  std::span<const shardrt_tensor> outputs, bool isRoot) {
  checkOutputCount(entry, outputs.size());
  Problems problems;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputSpec &spec = entry.outputs[entry.userOutputs[i]];
    const Slice &slice = shapes.outputs[entry.userOutputs[i]];
    const shardrt_tensor &tensor = outputs[i];
    std::string here = "output " + spec.name + ": ";
    if (tensor.scope != SHARDRT_LOCAL && spec.layout.hasPartial())
      problems.add(here + "it is partial (" + spec.layout.str() +
                   "): ask for each rank's part, a local tensor (shard-run --local)");
    if (tensor.scope == SHARDRT_ROOT && !isRoot)
      continue;
    if (!checkTensor(here, spec, tensor, problems))
      continue;
    if (tensor.scope < SHARDRT_LOCAL || tensor.scope > SHARDRT_ROOT) {
      problems.add(here + "its scope is " + std::to_string(tensor.scope));
      continue;
    }
    const std::vector<int64_t> &wanted = tensor.scope == SHARDRT_LOCAL ? slice.local : slice.global;
    if (!std::equal(wanted.begin(), wanted.end(), tensor.extents))
      problems.add(here + "it is " + describe(tensor.type, tensor.extents, spec.rank()) +
                   ", expected " + describe(spec.type, wanted));
    if (tensor.scope != SHARDRT_GLOBAL)
      checkData(here, tensor, problems);
    for (size_t d = 0; tensor.strides && d < spec.rank(); ++d)
      if (tensor.strides[d] < 1 && tensor.extents[d] > 1)
        problems.add(here + "stride " + std::to_string(tensor.strides[d]) + " of dim " +
                     std::to_string(d) + " is not positive");
  }
  problems.raise(SHARDRT_INVALID_ARGUMENT, outputsOf(entry));
}

} // namespace shardc::rt

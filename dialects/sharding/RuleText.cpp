// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialects/sharding/RuleText.h"

#include "dialects/sharding/HaloCost.h"
#include "dialects/sharding/RuleBuilder.h"

#include <algorithm>
#include <map>

namespace shardc {

int64_t TextWindow::positions(int64_t size) const {
  if (size == kDynamic)
    return kDynamic;
  return size < extent() ? 0 : (size - extent()) / stride + 1;
}

bool RuleText::isReduced(std::string_view name) const {
  return std::any_of(reduced.begin(), reduced.end(),
                     [&](const auto &entry) { return entry.first == name; });
}

//===-- Writing ------------------------------------------------------------------------------===//

static std::string windowText(const TextWindow &window) {
  std::string text = "[kernel=" + std::to_string(window.kernel);
  auto add = [&](const char *key, int64_t value, int64_t otherwise) {
    if (value != otherwise)
      text += std::string(", ") + key + "=" + std::to_string(value);
  };
  add("stride", window.stride, 1);
  add("dilation", window.dilation, 1);
  add("padding", window.padding, 0);
  if (window.mode != "zeros")
    text += ", mode=" + window.mode;
  return text + "]";
}

static std::string tensorText(const std::vector<TextDim> &dims) {
  std::string text;
  for (const TextDim &dim : dims) {
    std::string names;
    for (const std::string &name : dim.names)
      names += (names.empty() ? "" : " ") + name;
    text += (text.empty() ? "" : " ") + (dim.names.size() == 1 ? names : "(" + names + ")");
    if (dim.window)
      text += windowText(*dim.window);
  }
  return text.empty() ? "()" : text;
}

std::string RuleText::str() const {
  std::string text;
  for (size_t i = 0; i < operands.size(); ++i)
    text += (i ? ", " : "") + tensorText(operands[i]);
  text += " ->";
  for (size_t i = 0; i < results.size(); ++i)
    text += (i ? ", " : " ") + tensorText(results[i]);
  for (const auto &[name, reduction] : reduced)
    text += "; " + std::string(reductionName(reduction)) + " " + name;
  for (size_t i = 0; i < whole.size(); ++i)
    text += (i ? " " : "; whole ") + whole[i];
  return text;
}

//===-- Shapes -------------------------------------------------------------------------------===//

namespace {

/// The size that each name has, and whether dims of its own agree on it.
class NameSizes {
public:
  NameSizes(const RuleText &rule, const RuleText::Shapes &operandShapes,
            const RuleText::Shapes &resultShapes) {
    forEachDim(rule.operands, operandShapes, [&](const TextDim &dim, int64_t size) {
      if (dim.names.size() == 1)
        note(dim.names.front(), dim.window ? dim.window->positions(size) : size);
    });
    forEachDim(rule.results, resultShapes, [&](const TextDim &dim, int64_t size) {
      if (dim.names.size() == 1)
        note(dim.names.front(), size);
    });
    // The one name of a product that no dim gives.
    auto ofProduct = [&](const TextDim &dim, int64_t size) {
      std::string_view missing;
      for (const std::string &name : dim.names) {
        if (find(name) == kDynamic) {
          if (!missing.empty())
            return;
          missing = name;
        } else if (size != kDynamic && find(name) != 0) {
          size = size % find(name) == 0 ? size / find(name) : kDynamic;
        }
      }
      if (!missing.empty() && size != kDynamic)
        note(missing, size);
    };
    forEachDim(rule.operands, operandShapes, ofProduct);
    forEachDim(rule.results, resultShapes, ofProduct);
  }

  int64_t find(std::string_view name) const {
    auto it = sizes.find(std::string(name));
    return it == sizes.end() ? kDynamic : it->second;
  }

  template <typename F>
  static void forEachDim(const std::vector<std::vector<TextDim>> &tensors,
                         const RuleText::Shapes &shapes, F &&visit) {
    for (size_t i = 0; i < tensors.size() && i < shapes.size(); ++i)
      for (size_t d = 0; d < tensors[i].size() && d < shapes[i].size(); ++d)
        visit(tensors[i][d], shapes[i][d]);
  }

private:
  /// A dim of size 1 repeats, and takes no part where another has a size, known or not.
  void note(std::string_view name, int64_t size) {
    auto [it, added] = sizes.try_emplace(std::string(name), size);
    if (!added && size != 1 && (it->second == 1 || (it->second == kDynamic && size != kDynamic)))
      it->second = size;
  }

  std::map<std::string, int64_t> sizes;
};

} // namespace

std::vector<std::string> RuleText::check(const Shapes &operandShapes,
                                         const Shapes &resultShapes) const {
  std::vector<std::string> problems;
  NameSizes sizes(*this, operandShapes, resultShapes);
  auto side = [&](const std::string &kind, const std::vector<std::vector<TextDim>> &tensors,
                  const Shapes &shapes) {
    if (tensors.size() != shapes.size()) {
      problems.push_back("it has " + std::to_string(shapes.size()) + " " + kind +
                         (shapes.size() == 1 ? "" : "s") + ", but its rule describes " +
                         std::to_string(tensors.size()));
      return;
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
      std::string tensor = kind + " " + std::to_string(i);
      if (tensors[i].size() != shapes[i].size()) {
        problems.push_back(tensor + " has " + std::to_string(shapes[i].size()) +
                           " dims, but its rule says '" + tensorText(tensors[i]) + "'");
        continue;
      }
      for (size_t d = 0; d < tensors[i].size(); ++d) {
        const TextDim &dim = tensors[i][d];
        int64_t size = dim.window ? dim.window->positions(shapes[i][d]) : shapes[i][d];
        int64_t product = 1, known = 1;
        for (const std::string &name : dim.names) {
          int64_t factor = sizes.find(name);
          product = factor == kDynamic || product == kDynamic ? kDynamic : product * factor;
          known *= factor == kDynamic ? 1 : factor;
        }
        if (product == kDynamic && size != kDynamic && known > 0 && size % known != 0)
          problems.push_back("dim " + std::to_string(d) + " of " + tensor + " has " +
                             std::to_string(size) + " elements, which are no multiple of the " +
                             std::to_string(known) + " that names of '" +
                             tensorText({{dim.names, std::nullopt}}) + "' have elsewhere");
        if (size == kDynamic || product == kDynamic || size == product ||
            (shapes[i][d] == 1 && !dim.window && kind == "operand"))
          continue;
        problems.push_back("dim " + std::to_string(d) + " of " + tensor + " has " +
                           std::to_string(size) + (dim.window ? " positions" : " elements") +
                           ", but '" + tensorText({{dim.names, std::nullopt}}) + "' has " +
                           std::to_string(product) + " elsewhere");
      }
    }
  };
  side("operand", operands, operandShapes);
  side("result", results, resultShapes);
  return problems;
}

ShardingRule RuleText::build(const Shapes &operandShapes, const Shapes &resultShapes) const {
  RuleBuilder builder = RuleBuilder::ofShapes(operandShapes, resultShapes);
  NameSizes sizes(*this, operandShapes, resultShapes);
  // Where all operands that have a name only repeat along it, it is one of results.
  auto isInOperands = [&](const std::string &name) {
    for (size_t i = 0; i < operands.size(); ++i)
      for (size_t d = 0; d < operands[i].size(); ++d) {
        const std::vector<std::string> &names = operands[i][d].names;
        if ((operandShapes[i][d] != 1 || operands[i][d].window) &&
            std::find(names.begin(), names.end(), name) != names.end())
          return true;
      }
    return false;
  };
  auto has = [](const std::vector<std::vector<TextDim>> &tensors, const std::string &name) {
    for (const std::vector<TextDim> &dims : tensors)
      for (const TextDim &dim : dims)
        if (std::find(dim.names.begin(), dim.names.end(), name) != dim.names.end())
          return true;
    return false;
  };
  std::map<std::string, unsigned> factors;
  auto factorOf = [&](const std::string &name) {
    auto [it, added] = factors.try_emplace(name, 0);
    if (!added)
      return it->second;
    bool isWhole = std::find(whole.begin(), whole.end(), name) != whole.end();
    bool isReducible = isReduced(name);
    // Of a result that does not have it, each rank would make a part.
    bool isBoth = isInOperands(name) &&
                  std::all_of(results.begin(), results.end(),
                              [&](const std::vector<TextDim> &dims) { return has({dims}, name); });
    FactorKind kind = isWhole       ? FactorKind::NeedReplication
                      : isReducible ? FactorKind::Reducing
                      : isBoth      ? FactorKind::Parallel
                                    : FactorKind::NeedReplication;
    it->second = builder.factor(sizes.find(name), kind);
    for (const auto &[reducedName, reduction] : reduced)
      if (reducedName == name)
        builder.at(it->second).reduction = reduction;
    return it->second;
  };
  double perResultRow = 1;
  for (const std::vector<int64_t> &shape : resultShapes)
    perResultRow = std::max(perResultRow, elementsOf(shape));
  auto slide = [&](unsigned operand, size_t d) {
    const TextDim &dim = operands[operand][d];
    const std::string &name = dim.names.front();
    int64_t size = operandShapes[operand][d], count = sizes.find(name);
    unsigned factor = factorOf(name);
    Factor &described = builder.at(factor);
    if (size == kDynamic || count == kDynamic || count <= 1 || !described.canShard()) {
      described.kind = FactorKind::NeedReplication;
      return;
    }
    described.kind = FactorKind::Neighbouring;
    described.inOnePiece = true;
    double lacked = static_cast<double>(
        mostLackedOfTwo(size, count, [&](Run run) { return dim.window->cover(run); }));
    double perRow = elementsOf(operandShapes[operand]) / static_cast<double>(size);
    if (perResultRow != 0)
      described.haloAfter += lacked * perRow / (perResultRow / static_cast<double>(count));
  };
  for (bool isResult : {false, true}) {
    const auto &tensors = isResult ? results : operands;
    const Shapes &shapes = isResult ? resultShapes : operandShapes;
    for (unsigned i = 0; i < tensors.size(); ++i)
      for (size_t d = 0; d < tensors[i].size(); ++d) {
        const TextDim &dim = tensors[i][d];
        DimFactors described;
        for (const std::string &name : dim.names)
          if (dim.window || (shapes[i][d] != 1 && sizes.find(name) != 1))
            described.push_back(factorOf(name));
        if (isResult)
          builder.resultDim(i, static_cast<int64_t>(d), described);
        else
          builder.operandDim(i, static_cast<int64_t>(d), described);
        if (dim.window)
          slide(i, d);
      }
  }
  return builder.build();
}

} // namespace shardc

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dialects/dist/Dist.h"
#include "dialects/dist/GroupText.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace shardc;
using namespace shardc::dist;

Attribute shardc::dist::canonicalizeGroup(GroupAttrInterface group) {
  std::optional<std::vector<std::vector<int64_t>>> lists = group.getRankLists();
  if (!lists)
    return group;
  SmallVector<int64_t> ranks;
  for (const std::vector<int64_t> &list : *lists)
    ranks.append(list.begin(), list.end());
  return GroupsAttr::get(group.getContext(), group.getGroupSize(), ranks);
}

std::string shardc::dist::describeGroup(GroupAttrInterface group) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto axes = dyn_cast<AxesAttr>(group))
    llvm::interleave(axes.getAxes(), os, [&](StringAttr axis) { os << axis.getValue(); }, ",");
  else if (auto named = dyn_cast<NamedGroupAttr>(group))
    os << named.getName().getValue();
  else
    os << group;
  return text;
}

static void sortByFirstRank(std::vector<std::vector<int64_t>> &groups) {
  llvm::sort(groups, [](const auto &a, const auto &b) { return a.front() < b.front(); });
}

//===------------------------------------------------------------------------------------------===//
// Mesh axes
//===------------------------------------------------------------------------------------------===//

SmallVector<unsigned> AxesAttr::getAxisIndices() const {
  SmallVector<unsigned> indices;
  for (StringAttr name : getAxes())
    indices.push_back(*getMesh().getValue().axisIndex(name.getValue()));
  return indices;
}

int64_t AxesAttr::getGroupSize() const {
  int64_t size = 1;
  for (unsigned axis : getAxisIndices())
    size *= getMesh().getValue().axes[axis].size;
  return size;
}

std::optional<std::vector<std::vector<int64_t>>> AxesAttr::getRankLists() const {
  std::vector<std::vector<int64_t>> groups = getMesh().getValue().groups(getAxisIndices());
  sortByFirstRank(groups);
  return groups;
}

LogicalResult AxesAttr::verify(function_ref<InFlightDiagnostic()> emitError, MeshAttr mesh,
                               ArrayRef<StringAttr> axes) {
  llvm::SmallDenseSet<StringAttr> seen;
  for (StringAttr axis : axes) {
    if (!mesh.getValue().axisIndex(axis.getValue()))
      return emitError() << "the mesh has no axis " << axis << "; its axes are "
                         << mesh.getValue().str();
    if (!seen.insert(axis).second)
      return emitError() << "axis " << axis << " is listed twice";
  }
  return success();
}

Attribute AxesAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  MeshAttr mesh;
  SmallVector<StringAttr> axes;
  auto parseAxis = [&]() -> ParseResult {
    std::string name;
    if (parser.parseString(&name))
      return failure();
    axes.push_back(StringAttr::get(parser.getContext(), name));
    return success();
  };
  if (parser.parseLess() || parser.parseAttribute(mesh) || parser.parseComma() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseAxis) ||
      parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), mesh,
                    ArrayRef<StringAttr>(axes));
}

void AxesAttr::print(AsmPrinter &printer) const {
  printer << "<" << getMesh() << ", [";
  llvm::interleaveComma(getAxes(), printer,
                        [&](StringAttr axis) { printer.printString(axis.getValue()); });
  printer << "]>";
}

//===------------------------------------------------------------------------------------------===//
// Rank lists
//===------------------------------------------------------------------------------------------===//

std::optional<std::vector<std::vector<int64_t>>> GroupsAttr::getRankLists() const {
  std::vector<std::vector<int64_t>> groups;
  for (size_t begin = 0; begin < getRanks().size(); begin += getGroupSize()) {
    ArrayRef<int64_t> group = getRanks().slice(begin, getGroupSize());
    groups.emplace_back(group.begin(), group.end());
  }
  sortByFirstRank(groups);
  return groups;
}

LogicalResult GroupsAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t groupSize,
                                 ArrayRef<int64_t> ranks) {
  if (groupSize < 1 || ranks.empty() || ranks.size() % groupSize)
    return emitError() << "expected at least one group, and no empty one";
  llvm::DenseSet<int64_t> seen;
  for (int64_t rank : ranks) {
    if (rank < 0 || rank > std::numeric_limits<int32_t>::max())
      return emitError() << "rank " << rank << " is out of range";
    if (!seen.insert(rank).second)
      return emitError() << "rank " << rank << " is listed twice";
  }
  return success();
}

Attribute GroupsAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> ranks;
  std::optional<int64_t> size;
  auto parseRank = [&] { return parser.parseInteger(ranks.emplace_back()); };
  auto parseGroup = [&]() -> ParseResult {
    SMLoc groupLoc = parser.getCurrentLocation();
    int64_t begin = ranks.size();
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseRank))
      return failure();
    int64_t count = ranks.size() - begin;
    if (size && *size != count)
      return parser.emitError(groupLoc, "all groups must have one size: expected ")
             << *size << " ranks, got " << count;
    size = count;
    return success();
  };
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseGroup) ||
      parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(), size.value_or(0),
                    ArrayRef<int64_t>(ranks));
}

void GroupsAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(
      llvm::seq<size_t>(0, getRanks().size() / getGroupSize()), printer, [&](size_t group) {
        printer << "[";
        llvm::interleaveComma(getRanks().slice(group * getGroupSize(), getGroupSize()), printer);
        printer << "]";
      });
  printer << "]>";
}

//===------------------------------------------------------------------------------------------===//
// Named groups
//===------------------------------------------------------------------------------------------===//

int64_t NamedGroupAttr::getGroupSize() const { return getSize(); }

std::optional<std::vector<std::vector<int64_t>>> NamedGroupAttr::getRankLists() const {
  return std::nullopt;
}

LogicalResult NamedGroupAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr name,
                                     int64_t size) {
  if (size < 1 || size > maxDevices)
    return emitError() << "group " << name << " has size " << size << ", expected 1 to "
                       << maxDevices;
  return success();
}

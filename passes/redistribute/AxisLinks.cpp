// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/redistribute/AxisLinks.h"

using namespace llvm;
using namespace shardc;

std::optional<AxisNumbers> AxisNumbers::parse(ArrayRef<std::string> entries, std::string &bad) {
  AxisNumbers result;
  for (const std::string &entry : entries) {
    auto [name, text] = StringRef(entry).split('=');
    bool named = StringRef(entry).contains('=');
    double number = 0;
    if ((named ? text : name).trim().getAsDouble(number) || !(number >= 0)) {
      bad = entry;
      return std::nullopt;
    }
    if (named)
      result.byName[name.trim()] = number;
    else
      result.forAll = number;
  }
  return result;
}

std::optional<double> AxisNumbers::of(StringRef axis) const {
  auto found = byName.find(axis);
  return found == byName.end() ? forAll : found->second;
}

std::vector<std::string> AxisNumbers::unknown(ArrayRef<Mesh> meshes) const {
  std::vector<std::string> names;
  for (const auto &entry : byName) {
    auto hasAxis = [&](const Mesh &mesh) { return mesh.axisIndex(entry.first()).has_value(); };
    if (none_of(meshes, hasAxis))
      names.push_back(entry.first().str());
  }
  sort(names);
  return names;
}

cost::LinkCosts shardc::linksOf(const cost::CostModel &model, const Mesh &mesh,
                                const AxisNumbers &latencyUs, const AxisNumbers &gbPerSecond) {
  cost::LinkCosts byModel(model, mesh);
  if (latencyUs.empty() && gbPerSecond.empty())
    return byModel;
  std::vector<cost::LinkCost> axes;
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis) {
    const std::string &name = mesh.axes[axis].name;
    cost::LinkCost link = byModel.of(CollectiveKind::AllGather, std::array{axis});
    if (std::optional<double> us = latencyUs.of(name))
      link.latencyUs = *us;
    if (std::optional<double> gb = gbPerSecond.of(name); gb && *gb > 0)
      link.usPerByte = 1e-3 / *gb;
    axes.push_back(link);
  }
  return cost::LinkCosts(std::move(axes));
}

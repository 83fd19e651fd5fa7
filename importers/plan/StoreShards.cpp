// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "importers/plan/Resolve.h"

#include "llvm/ADT/STLExtras.h"

namespace shardc::plan {

/// The axes that the plan names, or else those that shard an input.
static std::vector<unsigned> dataAxes(const Training &training, const Mesh &mesh,
                                      const std::vector<Annotation> &annotations) {
  std::vector<unsigned> axes;
  for (unsigned axis = 0; axis < mesh.axes.size(); ++axis) {
    bool shardsInput = llvm::any_of(annotations, [&](const Annotation &annotation) {
      return annotation.target == Annotation::Target::Input && annotation.mesh.empty() &&
             annotation.layout.placements[axis].isShard();
    });
    bool isNamed = llvm::is_contained(training.zeroAxes, mesh.axes[axis].name);
    if (training.zeroAxes.empty() ? shardsInput : isNamed)
      axes.push_back(axis);
  }
  return axes;
}

void storeShards(const Training &training, const Mesh &mesh, const ModelNames &model,
                 std::vector<Annotation> &annotations) {
  const std::vector<unsigned> axes = dataAxes(training, mesh, annotations);
  for (unsigned i = 0; i < model.parameters.size() && !axes.empty(); ++i) {
    // A dim of one element is repeated rather than sharded by most ops.
    const auto &shape = model.parameters[i].shape;
    auto dim = llvm::find_if(shape, [](int64_t extent) { return extent > 1; });
    if (model.parameters[i].isBuffer || dim == shape.end())
      continue;
    auto found = llvm::find_if(annotations, [&](const Annotation &annotation) {
      return annotation.target == Annotation::Target::Parameter && annotation.index == i;
    });
    if (found == annotations.end()) {
      Annotation annotation;
      annotation.target = Annotation::Target::Parameter;
      annotation.index = i;
      annotation.layout = Layout(mesh, std::vector<Placement>(mesh.axes.size(), Placement::open()));
      annotation.origins.resize(mesh.axes.size());
      annotation.strengths.resize(mesh.axes.size(), Annotation::Strength::Normal);
      found = annotations.insert(annotations.end(), std::move(annotation));
    }
    for (unsigned axis : axes) {
      if (!found->layout.placements[axis].isOpen())
        continue;
      found->layout = found->layout.with(axis, Placement::shard(dim - shape.begin()));
      found->origins[axis] = "train: zero";
      found->strengths[axis] = Annotation::Strength::Weak;
    }
  }
}

} // namespace shardc::plan

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "passes/localize/ChannelGroups.h"

#include "passes/verify/core/FactorSets.h"

using namespace mlir;
using namespace shardc;

static int64_t numElements(const IndexSet &set) {
  int64_t count = 0;
  for (Run run : set)
    count += run.size();
  return count;
}

/// How many elements of one factor of the channels each position of the mesh has. A rank without
/// channels holds no product of sets: it has as many as the ranks that differ from it on `others`
/// only, the axes of the other factor.
static SmallVector<int64_t> countsOf(const FactorSets &sets, ArrayRef<unsigned> others,
                                     const Mesh &mesh) {
  SmallVector<int64_t> counts(mesh.numDevices(), 0);
  auto representative = [&](Coordinate coordinate) {
    for (unsigned axis : others)
      coordinate[axis] = 0;
    return mesh.positionOfCoordinate(coordinate);
  };
  for (int64_t position = 0; position < mesh.numDevices(); ++position) {
    Coordinate coordinate = mesh.coordinateOfPosition(position);
    int64_t &count = counts[representative(coordinate)];
    count = std::max(count, numElements(sets.sets[sets.at(coordinate)]));
  }
  for (int64_t position = 0; position < mesh.numDevices(); ++position)
    counts[position] = counts[representative(mesh.coordinateOfPosition(position))];
  return counts;
}

FailureOr<ChannelGroups> shardc::localGroups(Localizer &localizer, OpBuilder &builder,
                                             const GlobalSize &size, const DimSplit &split,
                                             int64_t numGroups) {
  LocalIndices indices = localizer.indices(builder);
  int64_t channels = size.fixed();
  ChannelGroups result;
  if (split.empty()) {
    result.groups = builder.getIndexAttr(numGroups);
    result.channels =
        getAsOpFoldResult(indices.ceilDiv(indices.global(size), indices.constant(numGroups)));
    return result;
  }
  if (channels == kDynamic) {
    localizer.refuse() << "channels of a symbolic size are sharded; replicate them before, or "
                          "export the model with a fixed number of channels";
    return failure();
  }
  const Mesh &mesh = localizer.getMesh().getValue();
  std::vector<FactorSets> factors =
      factorSetsOfDim(split, channels, {{numGroups, channels / numGroups}}, mesh);
  SmallVector<unsigned> ofGroups;
  bool legal = !factors.empty();
  for (const AxisSplit &axis : split.axes) {
    bool inside = legal && factors[1].dependsOn(axis.axis);
    // Where one rank has all that there is, the axis may as well share out groups.
    (inside ? result.sharedBy : ofGroups).push_back(axis.axis);
    legal = legal && !(inside && factors[0].dependsOn(axis.axis));
  }
  if (!legal) {
    localizer.refuse()
        << "the channels are cut inside groups and between them at once; shard whole "
           "groups (a granule of "
        << channels / numGroups << "), or a part of every group (blocks = " << numGroups << ")";
    return failure();
  }
  auto table = [&](const FactorSets &sets, ArrayRef<unsigned> others) {
    return getAsOpFoldResult(indices.table(countsOf(sets, others, mesh)));
  };
  result.groups = table(factors[0], result.sharedBy);
  result.channels = table(factors[1], ofGroups);
  return result;
}

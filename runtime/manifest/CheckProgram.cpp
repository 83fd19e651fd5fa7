// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether the tables of an artifact are sound and fit its manifest.
#include "runtime/comm/Call.h"
#include "runtime/manifest/Manifest.h"
#include "runtime/support/Failure.h"
#include "runtime/support/Types.h"

#include <cstring>

namespace shardc::rt {

namespace {

void checkGroup(const shardrt_group &group, size_t index, int64_t world, Problems &problems) {
  std::string here = "group " + std::to_string(index) + (group.name ? " " : "") +
                     (group.name ? group.name : "") + ": ";
  std::vector<bool> seen(size_t(world), false);
  for (uint32_t s = 0; s < group.n_sets; ++s) {
    if (group.set_begin[s + 1] <= group.set_begin[s])
      return problems.add(here + "set " + std::to_string(s) + " is empty");
    for (uint32_t i = group.set_begin[s]; i < group.set_begin[s + 1]; ++i) {
      uint32_t rank = group.ranks[i];
      if (rank >= world)
        return problems.add(here + "rank " + std::to_string(rank) + " is outside the world");
      if (seen[rank])
        return problems.add(here + "rank " + std::to_string(rank) + " occurs twice");
      seen[rank] = true;
    }
  }
}

void checkEntry(const shardrt_entry &entry, const EntrySpec &spec, int64_t world,
                Problems &problems) {
  std::string here = "entry " + spec.name + ": ";
  if (!entry.name || spec.name != entry.name)
    return problems.add(here + "the program calls it " + (entry.name ? entry.name : "nothing"));
  for (int64_t rank = 0; rank < world; ++rank) {
    uint32_t variant = entry.variant_of_rank[rank];
    if (variant != SHARDRT_NO_VARIANT && variant >= entry.n_variants)
      problems.add(here + "rank " + std::to_string(rank) + " has the unknown variant " +
                   std::to_string(variant));
  }
  for (uint32_t v = 0; v < entry.n_variants; ++v) {
    const shardrt_variant &variant = entry.variants[v];
    if (!variant.run || (variant.persistent_bytes > 0 && !variant.prepare))
      problems.add(here + "variant " + std::to_string(v) + " lacks a function");
  }
  if (entry.n_predicted > 0 && !entry.predicted)
    return problems.add(here + "its prediction is missing");
  for (uint64_t i = 0; i < entry.n_predicted; ++i) {
    const shardrt_span &span = entry.predicted[i];
    if (!span.name || !span.location || span.stream < SHARDRT_STREAM_COMPUTE ||
        span.stream > SHARDRT_STREAM_WAIT)
      return problems.add(here + "piece " + std::to_string(i) + " of its prediction is malformed");
  }
}

void checkConstant(const shardrt_constant &constant, Problems &problems) {
  std::string here = std::string("constant ") + (constant.name ? constant.name : "?") + ": ";
  int64_t bytes =
      constant.rank < 0 || constant.rank > SHARDRT_MAX_RANK
          ? -1
          : checkedBytes(constant.extents, size_t(constant.rank), typeBytes(constant.type));
  if (bytes < 0 || uint64_t(bytes) != constant.bytes || typeBytes(constant.type) == 0 ||
      (!constant.data && bytes > 0) || !constant.name)
    problems.add(here + "type, extents and bytes do not agree");
}

/// Of a program for a device: images that can be read, and kernels that a device can launch.
void checkKernels(const shardrt_program &program, Problems &problems) {
  for (uint32_t i = 0; i < program.n_images; ++i) {
    const shardrt_device_image &image = program.images[i];
    auto *text = static_cast<const char *>(image.data);
    if (!image.data || image.bytes == 0 || image.format < SHARDRT_IMAGE_CUBIN ||
        image.format > SHARDRT_IMAGE_BITCODE ||
        (image.format == SHARDRT_IMAGE_PTX && text[image.bytes - 1]))
      problems.add("image " + std::to_string(i) + " of its kernels is malformed");
  }
  if (program.n_kernels > 0 && program.n_images == 0)
    problems.add("it has kernels, and no image of them");
  for (uint32_t k = 0; k < program.n_kernels; ++k) {
    const shardrt_kernel &kernel = program.kernels[k];
    uint64_t threads = uint64_t(kernel.block[0]) * kernel.block[1] * kernel.block[2];
    if (!kernel.name || (kernel.n_messages > 0 && !kernel.messages) || threads == 0 ||
        threads > 1024)
      problems.add("kernel " + std::to_string(k) + (kernel.name ? " " : "") +
                   (kernel.name ? kernel.name : "") + " is malformed");
  }
}

} // namespace

void Manifest::checkProgram(const shardrt_program &program) const {
  Problems problems;
  if (program.struct_bytes != sizeof(shardrt_program))
    problems.add("the table has " + std::to_string(program.struct_bytes) + " bytes, expected " +
                 std::to_string(sizeof(shardrt_program)));
  problems.raise(SHARDRT_INCOMPATIBLE, "the artifact's program");
  for (uint32_t i = 0; i < program.n_groups; ++i)
    checkGroup(program.groups[i], i, worldSize, problems);
  if (problems.empty()) {
    std::vector<std::string> found;
    for (uint32_t i = 0; i < program.n_collectives; ++i)
      checkDescriptor(program.collectives[i], {program.groups, program.n_groups}, found);
    problems.add(found, "");
  }
  if (program.n_entries != entries.size())
    problems.add("it has " + std::to_string(program.n_entries) + " entries, the manifest " +
                 std::to_string(entries.size()));
  else
    for (uint32_t i = 0; i < program.n_entries; ++i)
      checkEntry(program.entries[i], entries[i], worldSize, problems);
  checkKernels(program, problems);
  for (uint32_t i = 0; i < program.n_constants; ++i)
    checkConstant(program.constants[i], problems);
  for (const ParameterSpec &parameter : parameters) {
    if (!parameter.isConstant)
      continue;
    bool found = false;
    for (uint32_t i = 0; i < program.n_constants && !found; ++i) {
      const shardrt_constant &constant = program.constants[i];
      if (parameter.name != constant.name)
        continue;
      found = true;
      std::vector<int64_t> extents = parameter.extents();
      if (parameter.type != constant.type ||
          !std::equal(extents.begin(), extents.end(), constant.extents,
                      constant.extents + constant.rank))
        problems.add("constant " + parameter.name + ": type or shape differ from the manifest's");
    }
    if (!found)
      problems.add("constant " + parameter.name + " is not in the artifact");
  }
  problems.raise(SHARDRT_BAD_FILE, "the artifact's program");
}

} // namespace shardc::rt

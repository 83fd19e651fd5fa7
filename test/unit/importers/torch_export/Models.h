// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Archives that PyTorch wrote at build time (test/models).
#ifndef SHARDC_TEST_UNIT_IMPORTERS_TORCH_EXPORT_MODELS_H
#define SHARDC_TEST_UNIT_IMPORTERS_TORCH_EXPORT_MODELS_H

#include "support/MappedFile.h"
#include "support/archive/Pt2Archive.h"

#include <gtest/gtest.h>
#include <string>

namespace shardc::test {

/// The bytes of build/test/models/NAME.
inline std::string modelFile(const std::string &name) {
  std::string error;
  auto file = MappedFile::open(std::string(SHARDC_TEST_MODELS) + "/" + name, error);
  if (!file) {
    ADD_FAILURE() << error;
    return {};
  }
  return std::string(reinterpret_cast<const char *>(file->bytes().data()), file->bytes().size());
}

/// The JSON of the program in NAME.
inline std::string modelJson(const std::string &name) {
  std::string bytes = modelFile(name), error;
  auto archive = Pt2Archive::read(std::as_bytes(std::span(bytes)), error);
  auto json = archive ? archive->programJson(error) : std::nullopt;
  if (!json) {
    ADD_FAILURE() << error;
    return {};
  }
  return std::string(*json);
}

} // namespace shardc::test

#endif // SHARDC_TEST_UNIT_IMPORTERS_TORCH_EXPORT_MODELS_H

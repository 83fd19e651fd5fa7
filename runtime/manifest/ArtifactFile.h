// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef SHARDC_RUNTIME_MANIFEST_ARTIFACTFILE_H
#define SHARDC_RUNTIME_MANIFEST_ARTIFACTFILE_H

#include <string>

namespace shardc::rt {

/// Looks at a file before the dynamic linker maps it, which believes what the file says of itself:
/// it must be a shared object for this machine, all of it must be there, and its seal (if it has
/// one) unbroken. Throws Failure.
void checkArtifactFile(const std::string &path);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_MANIFEST_ARTIFACTFILE_H

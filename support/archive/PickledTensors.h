// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors in the pickles of PyTorch's zip archives, those of torch.jit.save and of torch.save: how
// one is written as a call, and the record that its storage is.
#ifndef SHARDC_SUPPORT_ARCHIVE_PICKLEDTENSORS_H
#define SHARDC_SUPPORT_ARCHIVE_PICKLEDTENSORS_H

#include "support/archive/Pickle.h"
#include "support/archive/TensorStore.h"
#include "support/archive/Zip.h"

namespace shardc {

/// Whether a value is a call of this global ("module\nname") with a tuple of arguments.
bool isCallOf(const Pickle &pickle, Pickle::Id id, std::string_view global);
/// Whether it is one of torch._utils._rebuild_tensor_v2.
bool isPickledTensor(const Pickle &pickle, Pickle::Id id);
/// torch._utils._rebuild_tensor_v2(storage, offset, sizes, strides, requires_grad, hooks), where
/// storage is the persistent id ("storage", type, key, device, number of elements). Sets all of the
/// tensor but its name and storage; `key` is the record's name. False if it is of another kind.
bool readPickledTensor(const Pickle &pickle, Pickle::Id id, StoredTensor &tensor,
                       std::string_view &key);

/// The pickle in the record `root` + `name`, its checksum verified.
std::optional<Pickle> readPickle(const ZipArchive &zip, const std::string &root,
                                 const std::string &name, std::string &error);
/// Adds `tensor`, whose storage is the record `root` + `record`.
bool addPickledTensor(const ZipArchive &zip, const std::string &root, std::string record,
                      StoredTensor tensor, TensorStore &store, std::string &error);
/// Of an archive that says it, or that does not; otherwise `error` says so.
bool isLittleEndian(const ZipArchive &zip, const std::string &root, std::string &error);

} // namespace shardc

#endif // SHARDC_SUPPORT_ARCHIVE_PICKLEDTENSORS_H

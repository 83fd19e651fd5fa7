// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How MPI reduces each element type.
#ifndef SHARDC_RUNTIME_PLUGINS_MPI_OPERATIONS_H
#define SHARDC_RUNTIME_PLUGINS_MPI_OPERATIONS_H

#include "runtime/include/shardrt.h"

#include <mpi.h>

namespace shardc::plugin {

/// Elements of this many bytes that are only moved.
MPI_Datatype movedType(int64_t elementBytes);

struct Operation {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  bool offered() const { return op != MPI_OP_NULL; }
};

/// What reduces two partial results; nothing where the runtime must do it itself. Of an average it
/// is the sum, which `average` divides. Needs MPI to be initialised.
Operation operationOf(shardrt_type type, int32_t reduction);
/// Divides sums by the number of members.
void average(shardrt_type type, void *sums, int64_t count, int32_t members);

/// Makes and frees the operations that MPI does not have. Each is called once.
void makeOperations();
void freeOperations();

} // namespace shardc::plugin

#endif // SHARDC_RUNTIME_PLUGINS_MPI_OPERATIONS_H

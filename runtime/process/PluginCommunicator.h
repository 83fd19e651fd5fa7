// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A communicator of processes whose data moves by a library that the runtime loads.
#ifndef SHARDC_RUNTIME_PROCESS_PLUGINCOMMUNICATOR_H
#define SHARDC_RUNTIME_PROCESS_PLUGINCOMMUNICATOR_H

#include "runtime/control/ControlPlane.h"
#include "runtime/process/LoadPlugin.h"

namespace shardc::rt {

/// This rank's end; all ranks of the plane's world call it. Throws Failure, after the world was
/// given up.
std::unique_ptr<Communicator> makePluginEnd(std::shared_ptr<ControlPlane> plane,
                                            const LoadedPlugin &plugin, Clock::time_point deadline);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_PROCESS_PLUGINCOMMUNICATOR_H

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Libraries that are loaded, as communicators that a world can choose, and the launcher that some
// of them bring.
#ifndef SHARDC_RUNTIME_WORLD_PLUGINKIND_H
#define SHARDC_RUNTIME_WORLD_PLUGINKIND_H

#include "runtime/control/TcpControlPlane.h"
#include "runtime/process/LoadPlugin.h"
#include "runtime/world/Choice.h"

namespace shardc::rt {

/// `launched`: the world must have been started by the engine's own launcher, and has its ranks.
CommunicatorKind pluginKind(const std::string &name, const Variables &variables, bool launched);

/// Where variables do not say where rank 0 is: rank 0 makes a socket and a secret, and the engine's
/// launcher tells the others. Fills address, ports, secret and the socket. Throws Failure.
void meetByEngine(ControlOptions &options, const Variables &variables);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_WORLD_PLUGINKIND_H

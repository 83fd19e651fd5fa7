// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What members of a group must agree on before the data of a collective moves, where they do not
// see each other's calls.
#ifndef SHARDC_RUNTIME_COMM_AGREEMENT_H
#define SHARDC_RUNTIME_COMM_AGREEMENT_H

#include "runtime/comm/Call.h"
#include "runtime/support/Fnv.h"

namespace shardc::rt {

/// A hash of it. What members give each other in an exchange is each one's own, and not in it.
class Signature : public Fnv {
public:
  explicit Signature(const CollectiveCall &call);
};

/// The same as text: one line each of the run, the collective, what is equal in its operands, and
/// what they look like here.
std::string factsOf(const CollectiveCall &call);

/// How two members' calls, of which these are the facts, differ: "rank 0 is in A, rank 3 is in B
/// (different collectives)".
std::string factsDifference(uint32_t rankA, const std::string &factsA, uint32_t rankB,
                            const std::string &factsB);

} // namespace shardc::rt

#endif // SHARDC_RUNTIME_COMM_AGREEMENT_H

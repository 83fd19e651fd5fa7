// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Empty on purpose: each precompiled header needs a target of its own.

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/cuda/ReductionText.h"

namespace shardc::plugin::cuda {

namespace {

/// What sums are kept in: 16-bit floats in f32, integers in 32 bits, whose low ones are what their
/// type keeps when it wraps around; averages of integers in 64 bits, which do not.
enum class Sums : uint8_t { F32, F64, I32, I64 };

Sums sumsOf(shardrt_type type, uint32_t reduction) {
  switch (type) {
  case SHARDRT_F32:
  case SHARDRT_F16:
  case SHARDRT_BF16:
    return Sums::F32;
  case SHARDRT_F64:
    return Sums::F64;
  case SHARDRT_I64:
    return Sums::I64;
  default:
    return reduction == SHARDRT_AVG ? Sums::I64 : Sums::I32;
  }
}
bool isFloat(Sums sums) { return sums == Sums::F32 || sums == Sums::F64; }
bool isUnsigned(shardrt_type type) { return type == SHARDRT_U8 || type == SHARDRT_BOOL; }

/// Or and and of bytes that are 0 or 1 are their maximum and minimum.
uint32_t operationOf(shardrt_type type, uint32_t reduction) {
  if (type != SHARDRT_BOOL)
    return reduction;
  return reduction == SHARDRT_SUM || reduction == SHARDRT_MAX ? SHARDRT_MAX : SHARDRT_MIN;
}

} // namespace

std::string fillText(std::string text,
                     std::initializer_list<std::pair<const char *, std::string>> names) {
  for (const auto &[name, value] : names)
    for (size_t at = text.find(name); at != std::string::npos;
         at = text.find(name, at + value.size()))
      text.replace(at, std::string(name).size(), value);
  return text;
}

ReductionText reductionTextPtx(shardrt_type type, uint32_t reduction) {
  const Sums sums = sumsOf(type, reduction);
  const uint32_t operation = operationOf(type, reduction);
  const std::string bits = std::to_string(8 * elementBytes(type));
  // Registers: %v the element of a block, %a the sum, %o the sum with it.
  const char *registers = sums == Sums::F32   ? "f32"
                          : sums == Sums::F64 ? "f64"
                          : sums == Sums::I32 ? "s32"
                                              : "s64";
  std::string load, store;
  if (type == SHARDRT_F16) {
    load = "ld.global.b16 %h, [%at];\n cvt.f32.f16 %v, %h;";
    store = "cvt.rn.f16.f32 %h, %a;\n st.global.b16 [%at], %h;";
  } else if (type == SHARDRT_BF16) {
    load = "ld.global.b16 %h, [%at];\n mov.b32 %v, {%zero, %h};";
    store = "cvt.rn.bf16.f32 %h, %a;\n st.global.b16 [%at], %h;";
  } else {
    std::string kind = (isFloat(sums) ? "f" : isUnsigned(type) ? "u" : "s") + bits;
    load = "ld.global." + kind + " %v, [%at];";
    store = "st.global." + kind + " [%at], %a;";
  }
  std::string combine, finish;
  const std::string suffix = registers;
  switch (operation) {
  case SHARDRT_SUM:
  case SHARDRT_AVG:
    combine = std::string(isFloat(sums) ? "add.rn." : "add.") + suffix + " %o, %a, %v;";
    break;
  case SHARDRT_PROD:
    combine = std::string(isFloat(sums) ? "mul.rn." : "mul.lo.") + suffix + " %o, %a, %v;";
    break;
  default:
    combine = std::string("setp.") + (operation == SHARDRT_MIN ? "lt." : "gt.") + suffix +
              " %better, %v, %a;\n";
    if (isFloat(sums)) // a NaN wins
      combine += " setp.nan." + suffix + " %isnan, %v, %v;\n or.pred %better, %better, %isnan;\n";
    // Nothing is computed: the element or the sum.
    combine += " selp." + suffix + " %o, %v, %a, %better;";
  }
  if (operation == SHARDRT_AVG)
    finish = fillText(isFloat(sums) ? "cvt.rn.$t.u32 %v, %n;\n div.rn.$t %a, %a, %v;"
                                    : "cvt.$t.u32 %v, %n;\n div.$t %a, %a, %v;",
                      {{"$t", suffix}});
  combine = "setp.eq.u32 %isfirst, %q, 0;\n @%isfirst bra first;\n " + combine +
            "\n mov.$t %a, %o;\n bra.uni next;\nfirst:\n mov.$t %a, %v;\nnext:";
  return {registers, load, combine, finish, store, ""};
}

ReductionText reductionTextIr(shardrt_type type, uint32_t reduction) {
  const Sums sums = sumsOf(type, reduction);
  const uint32_t operation = operationOf(type, reduction);
  const std::string stored = type == SHARDRT_F16    ? "half"
                             : type == SHARDRT_BF16 ? "i16"
                             : type == SHARDRT_F32  ? "float"
                             : type == SHARDRT_F64  ? "double"
                                                    : "i" + std::to_string(8 * elementBytes(type));
  const std::string wide = sums == Sums::F32   ? "float"
                           : sums == Sums::F64 ? "double"
                           : sums == Sums::I32 ? "i32"
                                               : "i64";
  std::string load = "  %raw = load " + stored + ", ptr %at, align $bytes\n";
  std::string store;
  if (type == SHARDRT_BF16) {
    // By its bits: hosts have instructions for it that take subnormals for zeros.
    load += "  %high = zext i16 %raw to i32\n  %shifted = shl i32 %high, 16\n"
            "  %v = bitcast i32 %shifted to float\n";
    store = "  %bits = bitcast float %done to i32\n  %kept = lshr i32 %bits, 16\n"
            "  %odd = and i32 %kept, 1\n  %half = add i32 %odd, 32767\n"
            "  %sum = add i32 %bits, %half\n  %rounded = lshr i32 %sum, 16\n"
            "  %quiet = or i32 %kept, 64\n  %nan = fcmp uno float %done, %done\n"
            "  %result = select i1 %nan, i32 %quiet, i32 %rounded\n"
            "  %narrow = trunc i32 %result to i16\n  store i16 %narrow, ptr %to, align $bytes\n";
  } else if (stored == wide) {
    load = "  %v = load " + stored + ", ptr %at, align $bytes\n";
    store = "  store " + stored + " %done, ptr %to, align $bytes\n";
  } else {
    const char *extend = isFloat(sums) ? "fpext" : isUnsigned(type) ? "zext" : "sext";
    load += std::string("  %v = ") + extend + " " + stored + " %raw to " + wide + "\n";
    store = std::string("  %narrow = ") + (isFloat(sums) ? "fptrunc " : "trunc ") + wide +
            " %done to " + stored + "\n  store " + stored + " %narrow, ptr %to, align $bytes\n";
  }
  std::string combine, finish;
  const std::string prefix = isFloat(sums) ? "f" : "";
  switch (operation) {
  case SHARDRT_SUM:
  case SHARDRT_AVG:
    combine = "  %o = " + prefix + "add $t %a, %v\n";
    break;
  case SHARDRT_PROD:
    combine = "  %o = " + prefix + "mul $t %a, %v\n";
    break;
  default:
    const bool min = operation == SHARDRT_MIN;
    if (isFloat(sums))
      combine = std::string("  %before = fcmp ") + (min ? "olt" : "ogt") +
                " $t %v, %a\n  %isnan = fcmp uno $t %v, %v\n  %better = or i1 %before, %isnan\n";
    else
      combine = std::string("  %better = icmp ") + (min ? "slt" : "sgt") + " $t %v, %a\n";
    combine += "  %o = select i1 %better, $t %v, $t %a\n";
  }
  finish = "  %done = select i1 true, $t %next, $t %next\n";
  if (operation == SHARDRT_AVG)
    finish = isFloat(sums)
                 ? "  %members = uitofp i32 %n to $t\n  %done = fdiv $t %next, %members\n"
                 : "  %members = zext i32 %n to i64\n  %done = sdiv i64 %next, %members\n";
  return {wide, load, combine, finish, store, isFloat(sums) ? "0.0" : "0"};
}

} // namespace shardc::plugin::cuda

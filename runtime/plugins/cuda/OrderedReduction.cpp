// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/cuda/OrderedReduction.h"

namespace shardc::plugin::cuda {

namespace {

constexpr unsigned threads = 256;

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

/// Replaces each $name in a text.
std::string fill(std::string text,
                 std::initializer_list<std::pair<const char *, std::string>> names) {
  for (const auto &[name, value] : names)
    for (size_t at = text.find(name); at != std::string::npos;
         at = text.find(name, at + value.size()))
      text.replace(at, std::string(name).size(), value);
  return text;
}

} // namespace

std::string reductionPtx(shardrt_type type, uint32_t reduction) {
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
    finish = fill(isFloat(sums) ? "cvt.rn.$t.u32 %v, %n;\n div.rn.$t %a, %a, %v;"
                                : "cvt.$t.u32 %v, %n;\n div.$t %a, %a, %v;",
                  {{"$t", suffix}});
  return fill(R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry reduce(.param .u64 out, .param .u64 own, .param .u64 blocks, .param .u64 count,
                       .param .u64 stride, .param .u32 n, .param .u32 p)
{
 .reg .pred %outside, %isown, %isfirst, %more, %better, %isnan;
 .reg .b16 %h, %zero;
 .reg .b32 %block, %size, %thread, %n, %p, %q;
 .reg .b64 %out, %own, %blocks, %count, %stride, %i, %wide, %offset, %base, %at;
 .reg .$t %v, %a, %o;
 ld.param.u64 %out, [out];
 ld.param.u64 %own, [own];
 ld.param.u64 %blocks, [blocks];
 ld.param.u64 %count, [count];
 ld.param.u64 %stride, [stride];
 ld.param.u32 %n, [n];
 ld.param.u32 %p, [p];
 cvta.to.global.u64 %out, %out;
 cvta.to.global.u64 %own, %own;
 cvta.to.global.u64 %blocks, %blocks;
 mov.u16 %zero, 0;
 mov.u32 %block, %ctaid.x;
 mov.u32 %size, %ntid.x;
 mov.u32 %thread, %tid.x;
 mul.wide.u32 %i, %block, %size;
 cvt.u64.u32 %wide, %thread;
 add.s64 %i, %i, %wide;
 setp.ge.u64 %outside, %i, %count;
 @%outside ret;
 mul.lo.s64 %offset, %i, $bytes;
 mov.u32 %q, 0;
loop:
 cvt.u64.u32 %wide, %q;
 mul.lo.s64 %wide, %wide, %stride;
 add.s64 %base, %blocks, %wide;
 setp.eq.u32 %isown, %q, %p;
 selp.b64 %base, %own, %base, %isown;
 add.s64 %at, %base, %offset;
 $load
 setp.eq.u32 %isfirst, %q, 0;
 @%isfirst bra first;
 $combine
 mov.$t %a, %o;
 bra.uni next;
first:
 mov.$t %a, %v;
next:
 add.s32 %q, %q, 1;
 setp.lt.u32 %more, %q, %n;
 @%more bra loop;
 $finish
 add.s64 %at, %out, %offset;
 $store
 ret;
}
)",
              {{"$load", load},
               {"$combine", combine},
               {"$finish", finish},
               {"$store", store},
               {"$bytes", std::to_string(elementBytes(type))},
               {"$t", registers}});
}

std::string reductionIr(shardrt_type type, uint32_t reduction) {
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
  return fill(R"(target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
define ptx_kernel void @reduce(ptr %out, ptr %own, ptr %blocks, i64 %count, i64 %stride, i32 %n, i32 %p) {
entry:
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %size = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %blockw = zext i32 %block to i64
  %sizew = zext i32 %size to i64
  %threadw = zext i32 %thread to i64
  %before.i = mul i64 %blockw, %sizew
  %i = add i64 %before.i, %threadw
  %inside = icmp ult i64 %i, %count
  br i1 %inside, label %body, label %exit
body:
  %offset = mul i64 %i, $bytes
  br label %loop
loop:
  %q = phi i32 [ 0, %body ], [ %later, %loop ]
  %a = phi $t [ $zero, %body ], [ %next, %loop ]
  %isown = icmp eq i32 %q, %p
  %qw = zext i32 %q to i64
  %distance = mul i64 %qw, %stride
  %other = getelementptr i8, ptr %blocks, i64 %distance
  %base = select i1 %isown, ptr %own, ptr %other
  %at = getelementptr i8, ptr %base, i64 %offset
$load$combine  %isfirst = icmp eq i32 %q, 0
  %next = select i1 %isfirst, $t %v, $t %o
  %later = add i32 %q, 1
  %more = icmp ult i32 %later, %n
  br i1 %more, label %loop, label %last
last:
$finish  %to = getelementptr i8, ptr %out, i64 %offset
$store  br label %exit
exit:
  ret void
}
)",
              {{"$load", load},
               {"$combine", combine},
               {"$finish", finish},
               {"$store", store},
               {"$bytes", std::to_string(elementBytes(type))},
               {"$zero", isFloat(sums) ? "0.0" : "0"},
               {"$t", wide}});
}

OrderedReduction::~OrderedReduction() {
  for (auto &[what, loaded] : kernels)
    device.driver().moduleUnload(loaded.module);
}

FunctionHandle OrderedReduction::kernel(shardrt_type type, uint32_t reduction) {
  Loaded &loaded = kernels[{type, reduction}];
  if (loaded.function)
    return loaded.function;
  const Driver &driver = device.driver();
  if (device.isEmulated()) {
    std::string text = reductionIr(type, reduction);
    device.check(driver.loadBitcode(&loaded.module, text.c_str(), text.size() + 1),
                 "loading a reduction");
  } else {
    std::string text = reductionPtx(type, reduction);
    device.check(driver.moduleLoad(&loaded.module, text.c_str(), 0, nullptr, nullptr),
                 "loading a reduction");
  }
  device.check(driver.moduleFunction(&loaded.function, loaded.module, "reduce"),
               "loading a reduction");
  return loaded.function;
}

void OrderedReduction::run(shardrt_type type, uint32_t reduction, char *out, const Blocks &blocks,
                           uint64_t count, StreamHandle stream) {
  if (count == 0)
    return;
  uint64_t stride = blocks.stride;
  Blocks values = blocks;
  void *params[] = {&out, &values.own, &values.others, &count, &stride, &values.n, &values.p};
  const uint64_t grid = (count + threads - 1) / threads;
  if (grid > 0x7fffffff)
    throw Failure{SHARDRT_INCOMPATIBLE,
                  "a reduction of " + std::to_string(count) + " elements is too large"};
  device.check(device.driver().launch(kernel(type, reduction), unsigned(grid), 1, 1, threads, 1, 1,
                                      0, stream, params, nullptr),
               "a reduction");
}

} // namespace shardc::plugin::cuda

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plugins/cuda/PeerText.h"

#include "runtime/plugins/cuda/ReductionText.h"

namespace shardc::plugin::cuda {

namespace {

/// The words of a copy: how PTX and IR name them.
struct Word {
  const char *registers, *load, *store, *ir;
};
Word wordOf(unsigned bytes) {
  switch (bytes) {
  case 1:
    return {".reg .b16 %w;", "ld.global.u8 %w, [%at];", "st.global.u8 [%at], %w;", "i8"};
  case 2:
    return {".reg .b16 %w;", "ld.global.u16 %w, [%at];", "st.global.u16 [%at], %w;", "i16"};
  case 4:
    return {".reg .b32 %w;", "ld.global.u32 %w, [%at];", "st.global.u32 [%at], %w;", "i32"};
  case 8:
    return {".reg .b64 %w;", "ld.global.u64 %w, [%at];", "st.global.u64 [%at], %w;", "i64"};
  default:
    return {".reg .b64 %w, %x;", "ld.global.v2.u64 {%w, %x}, [%at];",
            "st.global.v2.u64 [%at], {%w, %x};", "<2 x i64>"};
  }
}

const std::string tableWords = std::to_string(sizeof(PeerCopyTable) / 8);
const std::string entryBytes = std::to_string(sizeof(PeerCopyEntry));
const std::string reductionWords = std::to_string(sizeof(PeerReductionTable) / 8);
const std::string resultsAt = std::to_string(offsetof(PeerReductionTable, results));

/// What both kernels declare in IR, and where a thread begins: %i along x, %r0 and %step along y.
constexpr const char *irHead = R"(target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.y()
)";
constexpr const char *irPlace = R"(  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %size = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %y = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %steps = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.y()
  %blockw = zext i32 %block to i64
  %sizew = zext i32 %size to i64
  %threadw = zext i32 %thread to i64
  %first.i = mul i64 %blockw, %sizew
  %i = add i64 %first.i, %threadw
  %r0 = zext i32 %y to i64
  %step = zext i32 %steps to i64
)";
constexpr const char *ptxPlace = R"( mov.u32 %a32, %ctaid.x;
 mov.u32 %b32, %ntid.x;
 mov.u32 %c32, %tid.x;
 mul.wide.u32 %i, %a32, %b32;
 cvt.u64.u32 %wide, %c32;
 add.s64 %i, %i, %wide;
 mov.u32 %a32, %ctaid.y;
 cvt.u64.u32 %r, %a32;
 mov.u32 %a32, %nctaid.y;
 cvt.u64.u32 %step, %a32;
)";

} // namespace

std::string peerCopyPtx(unsigned wordBytes) {
  const Word word = wordOf(wordBytes);
  return fillText(R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry copy(.param .align 8 .b8 table[$tablebytes])
{
 .reg .pred %done;
 .reg .b32 %a32, %b32, %c32;
 .reg .b64 %tab, %to, %from, %words, %rows, %slabrows, %topitch, %frompitch, %toslab, %fromslab;
 .reg .b64 %i, %wide, %r, %step, %offset, %slab, %in, %at;
 $registers
 mov.u32 %a32, %ctaid.z;
 mul.wide.u32 %wide, %a32, $entry;
 mov.b64 %tab, table;
 add.s64 %tab, %tab, %wide;
$place ld.param.u64 %words, [%tab+16];
 setp.ge.u64 %done, %i, %words;
 @%done ret;
 ld.param.u64 %to, [%tab];
 ld.param.u64 %from, [%tab+8];
 ld.param.u64 %rows, [%tab+24];
 ld.param.u64 %slabrows, [%tab+32];
 ld.param.u64 %topitch, [%tab+40];
 ld.param.u64 %frompitch, [%tab+48];
 ld.param.u64 %toslab, [%tab+56];
 ld.param.u64 %fromslab, [%tab+64];
 cvta.to.global.u64 %to, %to;
 cvta.to.global.u64 %from, %from;
 mul.lo.s64 %offset, %i, $bytes;
 add.s64 %to, %to, %offset;
 add.s64 %from, %from, %offset;
loop:
 setp.ge.u64 %done, %r, %rows;
 @%done ret;
 div.u64 %slab, %r, %slabrows;
 mul.lo.s64 %wide, %slab, %slabrows;
 sub.s64 %in, %r, %wide;
 mad.lo.s64 %at, %slab, %fromslab, %from;
 mad.lo.s64 %at, %in, %frompitch, %at;
 $load
 mad.lo.s64 %at, %slab, %toslab, %to;
 mad.lo.s64 %at, %in, %topitch, %at;
 $store
 add.s64 %r, %r, %step;
 bra loop;
}
)",
                  {{"$tablebytes", std::to_string(sizeof(PeerCopyTable))},
                   {"$registers", word.registers},
                   {"$entry", entryBytes},
                   {"$place", ptxPlace},
                   {"$bytes", std::to_string(wordBytes)},
                   {"$load", word.load},
                   {"$store", word.store}});
}

std::string peerCopyIr(unsigned wordBytes) {
  std::string fields;
  const char *names[] = {"to",      "from",      "words",  "rows",    "slabrows",
                         "topitch", "frompitch", "toslab", "fromslab"};
  for (size_t i = 0; i < std::size(names); ++i)
    fields += fillText(
        "  %$n.at = getelementptr i8, ptr %entry.at, i64 $o\n"
        "  %$n = load $kind, ptr %$n.at, align 8\n",
        {{"$n", names[i]}, {"$o", std::to_string(8 * i)}, {"$kind", i < 2 ? "ptr" : "i64"}});
  return fillText(
      R"($headdefine ptx_kernel void @copy(ptr byval([$tablewords x i64]) align 8 %table) {
entry:
  %z = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
  %zw = zext i32 %z to i64
  %entry.offset = mul i64 %zw, $entrybytes
  %entry.at = getelementptr i8, ptr %table, i64 %entry.offset
$fields$place  %inside = icmp ult i64 %i, %words
  br i1 %inside, label %begin, label %exit
begin:
  %offset = mul i64 %i, $bytes
  %to.i = getelementptr i8, ptr %to, i64 %offset
  %from.i = getelementptr i8, ptr %from, i64 %offset
  br label %loop
loop:
  %r = phi i64 [ %r0, %begin ], [ %later, %body ]
  %more = icmp ult i64 %r, %rows
  br i1 %more, label %body, label %exit
body:
  %slab = udiv i64 %r, %slabrows
  %before = mul i64 %slab, %slabrows
  %in = sub i64 %r, %before
  %a = mul i64 %slab, %fromslab
  %b = mul i64 %in, %frompitch
  %ab = add i64 %a, %b
  %source = getelementptr i8, ptr %from.i, i64 %ab
  %word = load $word, ptr %source, align $bytes
  %c = mul i64 %slab, %toslab
  %d = mul i64 %in, %topitch
  %cd = add i64 %c, %d
  %target = getelementptr i8, ptr %to.i, i64 %cd
  store $word %word, ptr %target, align $bytes
  %later = add i64 %r, %step
  br label %loop
exit:
  ret void
}
)",
      {{"$head", irHead},
       {"$tablewords", tableWords},
       {"$entrybytes", entryBytes},
       {"$fields", fields},
       {"$place", irPlace},
       {"$bytes", std::to_string(wordBytes)},
       {"$word", wordOf(wordBytes).ir}});
}

std::string peerReductionPtx(shardrt_type type, uint32_t reduction) {
  const ReductionText text = reductionTextPtx(type, reduction);
  return fillText(R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry reduce(.param .align 8 .b8 table[$size], .param .u64 count, .param .u64 rows,
                       .param .u64 sourcepitch, .param .u64 resultpitch, .param .u32 sources,
                       .param .u32 results)
{
 .reg .pred %outside, %isfirst, %more, %better, %isnan;
 .reg .b16 %h, %zero;
 .reg .b32 %a32, %b32, %c32, %n, %results, %q;
 .reg .b64 %tab, %slot, %count, %rows, %sourcepitch, %resultpitch;
 .reg .b64 %i, %wide, %r, %step, %column, %offset, %at;
 .reg .$t %v, %a, %o;
 mov.b64 %tab, table;
 ld.param.u64 %count, [count];
 ld.param.u64 %rows, [rows];
 ld.param.u64 %sourcepitch, [sourcepitch];
 ld.param.u64 %resultpitch, [resultpitch];
 ld.param.u32 %n, [sources];
 ld.param.u32 %results, [results];
 mov.u16 %zero, 0;
$place setp.ge.u64 %outside, %i, %count;
 @%outside ret;
 mul.lo.s64 %column, %i, $bytes;
row:
 setp.ge.u64 %outside, %r, %rows;
 @%outside ret;
 mad.lo.s64 %offset, %r, %sourcepitch, %column;
 mov.u64 %slot, %tab;
 mov.u32 %q, 0;
source:
 ld.param.u64 %at, [%slot];
 cvta.to.global.u64 %at, %at;
 add.s64 %at, %at, %offset;
 $load
 $combine
 add.s64 %slot, %slot, 8;
 add.s32 %q, %q, 1;
 setp.lt.u32 %more, %q, %n;
 @%more bra source;
 $finish
 mad.lo.s64 %offset, %r, %resultpitch, %column;
 add.s64 %slot, %tab, $results;
 mov.u32 %q, 0;
result:
 ld.param.u64 %at, [%slot];
 cvta.to.global.u64 %at, %at;
 add.s64 %at, %at, %offset;
 $store
 add.s64 %slot, %slot, 8;
 add.s32 %q, %q, 1;
 setp.lt.u32 %more, %q, %results;
 @%more bra result;
 add.s64 %r, %r, %step;
 bra row;
}
)",
                  {{"$size", std::to_string(sizeof(PeerReductionTable))},
                   {"$place", ptxPlace},
                   {"$results", resultsAt},
                   {"$load", text.load},
                   {"$combine", text.combine},
                   {"$finish", text.finish},
                   {"$store", text.store},
                   {"$bytes", std::to_string(elementBytes(type))},
                   {"$t", text.type}});
}

std::string peerReductionIr(shardrt_type type, uint32_t reduction) {
  const ReductionText text = reductionTextIr(type, reduction);
  return fillText(R"($headdefine ptx_kernel void @reduce(ptr byval([$words x i64]) align 8 %table,
    i64 %count, i64 %rows, i64 %sourcepitch, i64 %resultpitch, i32 %n, i32 %results) {
entry:
$place  %inside = icmp ult i64 %i, %count
  br i1 %inside, label %begin, label %exit
begin:
  %column = mul i64 %i, $bytes
  br label %row
row:
  %r = phi i64 [ %r0, %begin ], [ %later.r, %rowend ]
  %morerows = icmp ult i64 %r, %rows
  br i1 %morerows, label %rowbegin, label %exit
rowbegin:
  %r.source = mul i64 %r, %sourcepitch
  %offset = add i64 %r.source, %column
  %r.result = mul i64 %r, %resultpitch
  %offset.result = add i64 %r.result, %column
  br label %loop
loop:
  %q = phi i32 [ 0, %rowbegin ], [ %later, %loop ]
  %a = phi $t [ $zero, %rowbegin ], [ %next, %loop ]
  %qw = zext i32 %q to i64
  %slot = getelementptr i64, ptr %table, i64 %qw
  %base = load ptr, ptr %slot, align 8
  %at = getelementptr i8, ptr %base, i64 %offset
$load$combine  %isfirst = icmp eq i32 %q, 0
  %next = select i1 %isfirst, $t %v, $t %o
  %later = add i32 %q, 1
  %more = icmp ult i32 %later, %n
  br i1 %more, label %loop, label %last
last:
$finish  br label %resultloop
resultloop:
  %p = phi i32 [ 0, %last ], [ %later.p, %resultloop ]
  %pw = zext i32 %p to i64
  %slots.result = getelementptr i8, ptr %table, i64 $results
  %slot.result = getelementptr i64, ptr %slots.result, i64 %pw
  %base.result = load ptr, ptr %slot.result, align 8
  %to = getelementptr i8, ptr %base.result, i64 %offset.result
$store  %later.p = add i32 %p, 1
  %moreresults = icmp ult i32 %later.p, %results
  br i1 %moreresults, label %resultloop, label %rowend
rowend:
  %later.r = add i64 %r, %step
  br label %row
exit:
  ret void
}
)",
                  {{"$head", irHead},
                   {"$words", reductionWords},
                   {"$place", irPlace},
                   {"$results", resultsAt},
                   {"$load", text.load},
                   {"$combine", text.combine},
                   {"$finish", text.finish},
                   {"$store", text.store},
                   {"$bytes", std::to_string(elementBytes(type))},
                   {"$zero", text.zero},
                   {"$t", text.type}});
}

} // namespace shardc::plugin::cuda

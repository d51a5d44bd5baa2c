// Which threadgroups of a pass are counted, and what is made of their counts.
#include "counted_pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "counting.h"
#include "process.h"

namespace {

ksr_u64 block_work(const Kernel& kernel) {
    ksr_u64 work = 0;
    for (ksr_u32 i = 0; i < kernel.blocks; ++i) work += kernel.block_counts[i];
    return work;
}

void clear_counts(const Kernel& kernel, ksr_worker* worker, ksr_counting* counting) {
    memset(kernel.block_counts, 0, kernel.blocks * sizeof(ksr_u64));
    worker->counters = {};
    for (ksr_u32 i = 0; i < counting->arrays; ++i) counting->array[i].read = counting->array[i].written = false;
}

ksr_u64 lines_of(const ksr_counted_array& array) {
    return ((array.end - array.begin - 1) >> job.line_bits) + 1;
}

// Notes each line that is touched: worth it only where every threadgroup runs.
void count_footprints(ksr_counting* counting) {
    for (ksr_u32 i = 0; i < counting->arrays; ++i) {
        ksr_counted_array& array = counting->array[i];
        array.read_lines = static_cast<ksr_u8*>(calloc(lines_of(array) / 8 + 1, 1));
        array.written_lines = static_cast<ksr_u8*>(calloc(lines_of(array) / 8 + 1, 1));
    }
}

ksr_u64 touched(const ksr_counted_array& array, bool any, const ksr_u8* bitmap) {
    if (!bitmap) return any ? array.end - array.begin : 0;
    ksr_u64 lines = 0;
    for (ksr_u64 i = 0; i < (lines_of(array) + 7) / 8; ++i) lines += ksr_u64(__builtin_popcount(bitmap[i]));
    ksr_u64 bytes = lines << job.line_bits;
    return bytes < array.end - array.begin ? bytes : array.end - array.begin;
}

// The ith of `count` threadgroups that stand for all: spread evenly along the first dimension that has several, and
// by golden ratios along the others, so that no pattern of the grid (a causal mask, a tail) falls between them.
ksr_u64 sample(const ksr_launch& launch, ksr_u64 i, ksr_u64 count) {
    const ksr_u32 extents[] = {launch.groups.x, launch.groups.y, launch.groups.z};
    const double steps[] = {0.0, 0.6180339887498949, 0.7548776662466927};
    ksr_u64 index = 0, stride = 1;
    ksr_u32 several = 0;
    for (ksr_u32 extent : extents) {
        if (extent == 1) continue;
        double at = 0.5 + double(i) * steps[several];
        if (several) {
            at = floor((at - floor(at)) * extent);
        } else {  // towards the middle from both sides: what grows along the grid is met at its mean
            at = (double(i) + 0.5) / double(count) * extent - 0.5;
            at = 2 * i + 1 < count ? ceil(at) : floor(at);
        }
        index += ksr_u64(at) * stride;
        stride *= extent;
        ++several;
    }
    return index;
}

// Counts a sample of the threadgroups, as large as the budget allows: one of two says what a threadgroup costs.
ksr_u64 count_sample(const Kernel& kernel, const ksr_launch& launch, ksr_u64 total, ksr_counting* counting) {
    ksr_worker* worker = ksr_worker_shared(workers[0]);
    ksr_u64 sampled = total < 2 ? total : 2;
    for (;;) {
        clear_counts(kernel, worker, counting);
        if (sampled == total) count_footprints(counting);
        for (ksr_u64 i = 0; i < sampled; ++i) {
            ksr_forget_lines();
            ksr_run_threadgroup(workers[0], &launch, sampled == total ? i : sample(launch, i, sampled));
        }
        if (sampled != 2 || total == 2) return sampled;
        ksr_u64 work = (block_work(kernel) + worker->counters.logged) / 2 + 1;
        if (job.budget / work <= 2) return sampled;
        sampled = job.budget / work < total ? job.budget / work : total;
    }
}

}  // namespace

void count_pass(const Pass& pass, const Kernel& kernel, const ksr_launch& launch, ksr_u64 total, PassReport* into) {
    static ksr_counted_array arrays[kMaxBuffers];
    ksr_counting counting = {job.line_bits, job.block_bits, 0, arrays};
    for (ksr_u32 i = 0; i < pass.buffers; ++i) {
        const Array& array = job.array[pass.buffer[i]];
        if (array.constant) continue;
        ksr_address begin = reinterpret_cast<ksr_address>(array.at);
        arrays[counting.arrays++] = {begin, begin + array.bytes, false, false, nullptr, nullptr};
    }
    ksr_count_with(&counting);
    ksr_worker_reserve(workers[0], launch.threadgroup_bytes);
    into->sampled = count_sample(kernel, launch, total, &counting);
    into->counters = ksr_worker_shared(workers[0])->counters;
    for (ksr_u32 i = 0; i < counting.arrays; ++i) {
        into->footprint_read += touched(arrays[i], arrays[i].read, arrays[i].read_lines);
        into->footprint_written += touched(arrays[i], arrays[i].written, arrays[i].written_lines);
        free(arrays[i].read_lines);
        free(arrays[i].written_lines);
    }
    for (ksr_u32 block = 0; block < kernel.blocks; ++block)
        for (ksr_u32 kind = 0; kind < kKinds; ++kind)
            into->kinds[kind] += kernel.block_counts[block] * kernel.block_weights[block * kKinds + kind];
}

void prepare_counting(ksr_address begin, ksr_address end) {
    ksr_worker* worker = ksr_worker_shared(workers[0]);
    worker->device_begin = begin;
    worker->device_end = end;
    worker->log = static_cast<ksr_access*>(malloc(sizeof(ksr_access) * KSR_SIMD_WIDTH * KSR_LOG_STRIDE));
    if (!worker->log) fault(kOutOfMemory);
}

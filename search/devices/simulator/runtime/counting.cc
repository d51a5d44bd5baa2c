// Lanes of a simdgroup run one after another here, and at once on a GPU. Their logs are put side by side: the accesses
// that one instruction made in all lanes are one access of the simdgroup, which costs a transfer for each cache line
// (device memory) or a cycle for each word of the busiest bank (threadgroup memory).
#include "counting.h"

#include <stdlib.h>
#include <string.h>

#include "reuse.h"
#include "scheduler.h"

namespace {

constexpr ksr_u32 kBanks = 32, kWordBytes = 4;
constexpr ksr_u32 kRecent = 8;
constexpr ksr_u32 kWidest = 16;

ksr_counting* counting;
ksr_reuse reuse[KSR_MAX_SIMDGROUPS];

// One access of a simdgroup: the lanes that make it, where each begins, and how many bytes each moves.
struct Column {
    ksr_u64 tag;
    ksr_u32 lanes;
    ksr_u32 count;
    ksr_u32 bytes;
    bool write;
    bool device;
    ksr_address address[KSR_SIMD_WIDTH];
};

// Columns that later ones may still widen: neighbouring addresses that a lane accesses by instructions close together
// (not by one in a loop) are one access of up to 16 bytes, which is what the source of a float4 load means.
Column recent[kRecent];
ksr_u32 recents, oldest;  // how many, and where the oldest stands in the ring

// Numbers without repeats.
struct Distinct {
    ksr_u64 number[KSR_SIMD_WIDTH * 2];
    ksr_u64 highest;
    ksr_u32 count;

    void add(ksr_u64 another) {
        if (!count || another > highest) {  // as it is where lanes go upwards
            highest = another;
        } else {
            for (ksr_u32 i = count; i-- > 0;)
                if (number[i] == another) return;
        }
        number[count++] = another;
    }
};

void count_device(ksr_worker* worker, const Column& column) {
    const ksr_u32 line_bits = counting->line_bits, block_bits = counting->block_bits;
    Distinct blocks, lines;
    blocks.count = lines.count = 0;
    for (ksr_u32 i = 0; i < column.count; ++i) {
        ksr_u64 end = (column.address[i] + column.bytes - 1) >> block_bits;
        for (ksr_u64 block = column.address[i] >> block_bits; block <= end; ++block) blocks.add(block);
    }
    for (ksr_u32 i = 0; i < blocks.count; ++i) lines.add(blocks.number[i] >> (line_bits - block_bits));
    ++worker->counters.device_accesses;
    worker->counters.device_blocks += blocks.count;
    ksr_u64* by_depth = column.write ? worker->counters.device_write_lines : worker->counters.device_read_lines;
    ksr_reuse& before = reuse[worker->simdgroup->first_thread / KSR_SIMD_WIDTH];
    const ksr_u64 first_line = worker->device_begin >> line_bits;
    for (ksr_u32 j = 0; j < lines.count; ++j)
        ++by_depth[before.touch(ksr_u32(lines.number[j] - first_line), column.write)];
    for (ksr_u32 j = 0; j < lines.count; ++j) {
        ksr_address address = lines.number[j] << line_bits, end = (lines.number[j] + 1) << line_bits;
        for (ksr_u32 a = 0; a < counting->arrays; ++a) {
            ksr_counted_array& array = counting->array[a];
            if (end <= array.begin || address >= array.end) continue;
            (column.write ? array.written : array.read) = true;
            ksr_u8* bitmap = column.write ? array.written_lines : array.read_lines;
            if (!bitmap) continue;
            ksr_u64 line = lines.number[j] - (array.begin >> line_bits);
            bitmap[line / 8] |= ksr_u8(1u << line % 8);
        }
    }
}

void count_threadgroup(ksr_worker* worker, const Column& column) {
    ksr_u64 words[KSR_SIMD_WIDTH * (kWidest / kWordBytes + 1)];
    ksr_u32 in_bank[kBanks] = {};
    ksr_u32 found = 0, cycles = 0;
    for (ksr_u32 i = 0; i < column.count; ++i) {
        ksr_u64 end = (column.address[i] + column.bytes - 1) / kWordBytes;
        for (ksr_u64 word = column.address[i] / kWordBytes; word <= end; ++word) {
            ksr_u32 j = 0;
            while (j < found && words[j] != word) ++j;
            if (j < found) continue;
            words[found++] = word;
            ksr_u32 busy = ++in_bank[word % kBanks];
            if (busy > cycles) cycles = busy;
        }
    }
    worker->counters.threadgroup_accesses += column.count;
    worker->counters.threadgroup_cycles += cycles;
}

void count(ksr_worker* worker, const Column& column) {
    column.device ? count_device(worker, column) : count_threadgroup(worker, column);
}

bool widen(const Column& column) {
    for (ksr_u32 r = recents; r-- > 0;) {
        Column& before = recent[(oldest + r) % kRecent];
        if (before.tag == column.tag || before.lanes != column.lanes || before.write != column.write || before.device != column.device ||
            before.bytes + column.bytes > kWidest)
            continue;
        ksr_u32 i = 0;
        while (i < column.count && column.address[i] == before.address[i] + before.bytes) ++i;
        if (i < column.count) continue;
        before.bytes += column.bytes;
        return true;
    }
    return false;
}

void take(ksr_worker* worker, const Column& column) {
    if (widen(column)) return;
    Column& place = recent[(oldest + recents) % kRecent];
    if (recents == kRecent) {
        count(worker, place);
        oldest = (oldest + 1) % kRecent;
    } else {
        ++recents;
    }
    place = column;
}

void start_column(ksr_worker* worker, Column* column, const ksr_access& access) {
    column->tag = access.tag;
    column->lanes = column->count = 0;
    column->bytes = ksr_u32(access.tag >> 1 & 0x7F);
    column->write = access.tag & 1;
    column->device = access.address >= worker->device_begin && access.address < worker->device_end;
}

// Where lanes go different ways (a loop that some leave earlier), the nth time that each ran an instruction is one
// access: as on a GPU, where those ahead wait for the others. It is counted when nobody can join it any more.
struct Instruction {
    ksr_u64 tag;
    ksr_u32 times[KSR_SIMD_WIDTH];
};

struct Gathering {
    ksr_u32 nth, next;  // the next one of the same bucket, counted from 1
    bool counted;
    Column column;
};

constexpr ksr_u32 kInstructions = 4096, kGatherings = 32768, kBuckets = 65536;

struct Strayed {
    ksr_u32 instructions, gatherings;
    ksr_u32 bucket[kBuckets];
    Instruction instruction[kInstructions];
    Gathering gathering[kGatherings];
};

Strayed* strayed;  // null until lanes first go different ways

ksr_u32 hash(ksr_u64 tag, ksr_u32 nth) { return ksr_u32(((tag + nth) * 0x9E3779B97F4A7C15ull) >> 40); }

// Counts what was gathered and forgets how often each lane ran what: the lanes are together again.
void gather_no_more(ksr_worker* worker) {
    if (!strayed || !strayed->instructions) return;
    for (ksr_u32 i = 0; i < strayed->gatherings; ++i)
        if (!strayed->gathering[i].counted) take(worker, strayed->gathering[i].column);
    memset(strayed->bucket, 0, sizeof strayed->bucket);
    memset(strayed->instruction, 0, sizeof strayed->instruction);
    strayed->instructions = strayed->gatherings = 0;
}

ksr_u32 times_before(ksr_u64 tag, ksr_u32 lane) {
    for (ksr_u32 at = hash(tag, 0) % kInstructions;; at = (at + 1) % kInstructions) {
        Instruction& instruction = strayed->instruction[at];
        if (!instruction.tag) {
            instruction.tag = tag;
            ++strayed->instructions;
        }
        if (instruction.tag == tag) return instruction.times[lane]++;
    }
}

// Joins an access of `lane` with those of others; `coming` has the lanes that may still join.
void gather(ksr_worker* worker, ksr_u32 lane, const ksr_access& access, ksr_u32 coming) {
    if (strayed->gatherings == kGatherings || strayed->instructions == kInstructions / 2) gather_no_more(worker);
    ksr_u32 nth = times_before(access.tag, lane);
    ksr_u32& bucket = strayed->bucket[hash(access.tag, nth) % kBuckets];
    ksr_u32 at = bucket;
    while (at && (strayed->gathering[at - 1].column.tag != access.tag || strayed->gathering[at - 1].nth != nth))
        at = strayed->gathering[at - 1].next;
    if (!at) {
        at = ++strayed->gatherings;
        Gathering& fresh = strayed->gathering[at - 1];
        fresh.nth = nth;
        fresh.next = bucket;
        fresh.counted = false;
        start_column(worker, &fresh.column, access);
        bucket = at;
    }
    Gathering& gathering = strayed->gathering[at - 1];
    gathering.column.lanes |= 1u << lane;
    gathering.column.address[gathering.column.count++] = access.address;
    if (coming & ~gathering.column.lanes) return;
    take(worker, gathering.column);
    gathering.counted = true;
}

// Puts the logs side by side as long as they agree; returns how far that is.
ksr_u32 take_together(ksr_worker* worker) {
    for (ksr_u32 k = 0;; ++k) {
        Column column;
        column.count = 0;
        for (ksr_u32 lane = 0; lane < KSR_SIMD_WIDTH; ++lane) {
            if (k >= worker->logged[lane]) continue;
            const ksr_access& access = worker->log[lane * KSR_LOG_STRIDE + k];
            if (!column.count) start_column(worker, &column, access);
            if (access.tag != column.tag) return k;
            column.lanes |= 1u << lane;
            column.address[column.count++] = access.address;
        }
        if (!column.count) return k;
        take(worker, column);
    }
}

}  // namespace

void ksr_count_with(ksr_counting* with) { counting = with; }

void ksr_forget_lines() {
    for (ksr_reuse& simdgroup : reuse) simdgroup.held = 0;
}

void ksr_flush_log(ksr_worker* worker, bool together) {
    ksr_u32 agreed = strayed && strayed->instructions ? 0 : take_together(worker);
    ksr_u32 rest = 0;
    for (ksr_u32 lane = 0; lane < KSR_SIMD_WIDTH; ++lane)
        if (agreed < worker->logged[lane]) rest |= 1u << lane;
    if (rest && !strayed) strayed = static_cast<Strayed*>(calloc(1, sizeof(Strayed)));
    for (ksr_u32 lane = 0; lane < KSR_SIMD_WIDTH; ++lane) {
        for (ksr_u32 k = agreed; k < worker->logged[lane]; ++k)
            gather(worker, lane, worker->log[lane * KSR_LOG_STRIDE + k], worker->simdgroup->live | rest);
        rest &= ~(1u << lane);
        worker->counters.logged += worker->logged[lane];
        worker->logged[lane] = 0;
    }
    if (!together) return;
    gather_no_more(worker);
    for (ksr_u32 i = 0; i < recents; ++i) count(worker, recent[(oldest + i) % kRecent]);
    recents = 0;
}

#include "job.h"

#include <stdio.h>
#include <string.h>

namespace {

bool read_triple(ksr_uint3* into) { return scanf("%u %u %u", &into->x, &into->y, &into->z) == 3; }

bool read_array(Job* job) {
    if (job->arrays == kMaxArrays) return false;
    Array& array = job->array[job->arrays++];
    unsigned writable, constant;
    if (scanf("%llu %llu %u %u", &array.offset, &array.bytes, &writable, &constant) != 4) return false;
    array.writable = writable;
    array.constant = constant;
    return true;
}

bool read_pass(Job* job) {
    if (job->passes == kMaxPasses) return false;
    Pass& pass = job->pass[job->passes++];
    if (!read_triple(&pass.grid) || !read_triple(&pass.group) || scanf("%u %u", &pass.dynamic_bytes, &pass.buffers) != 2)
        return false;
    if (pass.buffers > kMaxBuffers) return false;
    for (ksr_u32 i = 0; i < pass.buffers; ++i)
        if (scanf("%u", &pass.buffer[i]) != 1 || pass.buffer[i] >= job->arrays) return false;
    return scanf(" %4095[^\n]", pass.path) == 1;
}

}  // namespace

bool read_job(Job* job) {
    char word[16];
    while (scanf("%15s", word) == 1) {
        if (!strcmp(word, "array")) {
            if (!read_array(job)) return false;
        } else if (!strcmp(word, "pass")) {
            if (!read_pass(job)) return false;
        } else if (!strcmp(word, "limits")) {
            unsigned count;
            if (scanf("%u %u %u %u %u %u %llu", &count, &job->workers, &job->seconds, &job->line_bits,
                      &job->block_bits, &job->memory_limit, &job->budget) != 7)
                return false;
            job->count = count;
        } else if (!strcmp(word, "check")) {
            unsigned in_turns;
            if (scanf("%llu %u %u", &job->seed, &in_turns, &job->milliseconds) != 3) return false;
            job->check = true;
            job->in_turns = in_turns;
        } else if (!strcmp(word, "end")) {
            return job->passes && job->workers;
        } else {
            return false;
        }
    }
    return false;
}

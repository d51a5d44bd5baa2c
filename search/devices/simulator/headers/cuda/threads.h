// Where a thread stands: read off its fiber, so that any function may ask.
#pragma once

namespace ksr {

KSR_INLINE uint3 thread_index() {
    const ksr_worker* worker = ksr_here();
    const ksr_u16* position = worker->positions[worker->simdgroup->first_thread + worker->lane];
    return {position[0], position[1], position[2]};
}
KSR_INLINE uint3 block_index() {
    const ksr_thread* thread = ksr_here()->thread;
    return {thread->group.x, thread->group.y, thread->group.z};
}
KSR_INLINE dim3 block_extent() {
    const ksr_thread* thread = ksr_here()->thread;
    return {thread->nominal_size.x, thread->nominal_size.y, thread->nominal_size.z};
}
KSR_INLINE dim3 grid_extent() {
    const ksr_thread* thread = ksr_here()->thread;
    return {thread->groups.x, thread->groups.y, thread->groups.z};
}

}  // namespace ksr

#define threadIdx (ksr::thread_index())
#define blockIdx (ksr::block_index())
#define blockDim (ksr::block_extent())
#define gridDim (ksr::grid_extent())
constexpr int warpSize = 32;

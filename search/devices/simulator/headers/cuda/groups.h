// Cooperative groups: the block, and tiles of a warp.
#pragma once

namespace cooperative_groups {

struct thread_block {
    KSR_INLINE void sync(KSR_AT) const { __syncthreads(ksr_at); }
    KSR_INLINE unsigned int thread_rank() const { return ksr_here()->simdgroup->first_thread + ksr_here()->lane; }
    KSR_INLINE unsigned int size() const {
        dim3 extent = blockDim;
        return extent.x * extent.y * extent.z;
    }
    KSR_INLINE unsigned int num_threads() const { return size(); }
    KSR_INLINE dim3 group_index() const { return blockIdx; }
    KSR_INLINE dim3 thread_index() const { return threadIdx; }
    KSR_INLINE dim3 group_dim() const { return blockDim; }
};
KSR_INLINE thread_block this_thread_block() { return {}; }
KSR_INLINE void sync(const thread_block& block, KSR_AT) { block.sync(ksr_at); }

template <unsigned int Size, class Parent = void> struct thread_block_tile {
    static_assert(Size && Size <= 32 && !(Size & (Size - 1)), "a tile has 1, 2, 4, 8, 16 or 32 threads");
    KSR_INLINE static unsigned int ksr_mask() { return (Size == 32 ? ~0u : (1u << Size) - 1) << ksr::group_begin(ksr_here()->lane, Size); }
    KSR_INLINE void sync(KSR_AT) const { __syncwarp(ksr_mask(), ksr_at); }
    KSR_INLINE unsigned int thread_rank() const { return ksr_here()->lane % Size; }
    KSR_INLINE static constexpr unsigned int size() { return Size; }
    KSR_INLINE static constexpr unsigned int num_threads() { return Size; }
    KSR_INLINE unsigned int meta_group_rank() const { return thread_block().thread_rank() / Size; }
    KSR_INLINE unsigned int meta_group_size() const { return (thread_block().size() + Size - 1) / Size; }
    template <class T> KSR_INLINE T shfl(T value, int from, KSR_AT) const { return __shfl_sync(ksr_mask(), value, from, Size, ksr_at); }
    template <class T> KSR_INLINE T shfl_up(T value, unsigned int delta, KSR_AT) const { return __shfl_up_sync(ksr_mask(), value, delta, Size, ksr_at); }
    template <class T> KSR_INLINE T shfl_down(T value, unsigned int delta, KSR_AT) const { return __shfl_down_sync(ksr_mask(), value, delta, Size, ksr_at); }
    template <class T> KSR_INLINE T shfl_xor(T value, int bits, KSR_AT) const { return __shfl_xor_sync(ksr_mask(), value, bits, Size, ksr_at); }
    KSR_INLINE int any(int predicate, KSR_AT) const { return __any_sync(ksr_mask(), predicate, ksr_at); }
    KSR_INLINE int all(int predicate, KSR_AT) const { return __all_sync(ksr_mask(), predicate, ksr_at); }
    KSR_INLINE unsigned int ballot(int predicate, KSR_AT) const {
        return __ballot_sync(ksr_mask(), predicate, ksr_at) >> ksr::group_begin(ksr_here()->lane, Size);
    }
};
template <unsigned int Size> KSR_INLINE thread_block_tile<Size> tiled_partition(const thread_block&) { return {}; }
template <unsigned int Size, unsigned int Outer> KSR_INLINE thread_block_tile<Size> tiled_partition(const thread_block_tile<Outer>&) {
    static_assert(Size <= Outer, "a tile lies within what it is a part of");
    return {};
}

template <class T> struct plus { KSR_INLINE T operator()(T a, T b) const { return T(a + b); } };
template <class T> struct greater { KSR_INLINE T operator()(T a, T b) const { return a < b ? b : a; } };
template <class T> struct less { KSR_INLINE T operator()(T a, T b) const { return b < a ? b : a; } };
template <unsigned int Size, class T, class Op>
KSR_INLINE T reduce(const thread_block_tile<Size>& tile, T value, Op op, KSR_AT) {
    for (unsigned int bits = Size / 2; bits; bits /= 2) value = op(value, tile.shfl_xor(value, int(bits), ksr_at));
    return value;
}

}  // namespace cooperative_groups

// Barriers, and what the lanes of a warp do together. Only lanes that a mask names take part with a lane; a lane that
// is named, lives, and does not come is told in checked mode.
#pragma once

namespace ksr {

constexpr uint kFences = uint(metal::mem_flags::mem_device | metal::mem_flags::mem_threadgroup) | KSR_RETURNED_ARRIVE;

// What a lane brings to an operation: its value, and which lanes it counts on.
template <class T> struct masked {
    T value;
    uint mask;
};

#ifdef KSR_CHECKED
template <class T> KSR_INLINE void expect_named(ksr_simdgroup* group, ksr_u32 active) {
    for (uint rest = active; rest; rest &= rest - 1) {
        uint lane = uint(__builtin_ctz(rest)), mask = values<masked<T>>(group)[lane].mask;
        if (mask & group->live & ~active || !(mask >> lane & 1)) {
            ksr_absent_named(group, lane, mask, active);
            return;
        }
    }
}
#else
template <class T> KSR_INLINE void expect_named(ksr_simdgroup*, ksr_u32) {}
#endif

// Each lane takes the value of the lane that its operand names.
template <class T> KSR_UNCOUNTED void exchange(ksr_simdgroup* group, ksr_u32 active) {
    KSR_COUNT(shuffles, 1);
    expect_named<T>(group, active);
    for (uint rest = active; rest; rest &= rest - 1) {
        uint lane = uint(__builtin_ctz(rest));
        take<masked<T>>(group, active, lane, group->operand[lane]);
    }
}

KSR_UNCOUNTED inline void ballot_named(ksr_simdgroup* group, ksr_u32 active) {
    KSR_COUNT(shuffles, 1);
    expect_named<uint>(group, active);
    const slots<masked<uint>> value = values<masked<uint>>(group);
    uint votes = 0;
    for (uint rest = active; rest; rest &= rest - 1) {
        uint lane = uint(__builtin_ctz(rest));
        if (value[lane].value) votes |= 1u << lane;
    }
    for (uint rest = active; rest; rest &= rest - 1) {
        uint lane = uint(__builtin_ctz(rest));
        results<masked<uint>>(group)[lane] = {votes & value[lane].mask, active & value[lane].mask};
    }
}

// The lanes with the same bits as this one.
KSR_UNCOUNTED inline void match_named(ksr_simdgroup* group, ksr_u32 active) {
    KSR_COUNT(shuffles, 1);
    expect_named<ksr_u64>(group, active);
    const slots<masked<ksr_u64>> value = values<masked<ksr_u64>>(group);
    for (uint rest = active; rest; rest &= rest - 1) {
        uint lane = uint(__builtin_ctz(rest)), same = 0;
        for (uint others = active & value[lane].mask; others; others &= others - 1) {
            uint other = uint(__builtin_ctz(others));
            if (value[other].value == value[lane].value) same |= 1u << other;
        }
        results<masked<ksr_u64>>(group)[lane] = {same, active & value[lane].mask};
    }
}

template <class T, class Op> KSR_UNCOUNTED void reduce_named(ksr_simdgroup* group, ksr_u32 active) {
    KSR_COUNT(reductions, 1);
    expect_named<T>(group, active);
    const slots<masked<T>> value = values<masked<T>>(group);
    for (uint rest = active; rest; rest &= rest - 1) {
        uint lane = uint(__builtin_ctz(rest));
        T result = value[lane].value;
        for (uint others = active & value[lane].mask & ~(1u << lane); others; others &= others - 1)
            result = Op::of(result, value[__builtin_ctz(others)].value);
        results<masked<T>>(group)[lane] = {result, 0};
    }
}

KSR_UNCOUNTED inline void meet_named(ksr_simdgroup* group, ksr_u32 active) { expect_named<uint>(group, active); }

template <class T> KSR_INLINE T from_lane(uint mask, T value, uint lane, ksr_u64 at, kind what) {
    static_assert(sizeof(T) <= 8, "a shuffle takes values of at most 8 bytes");
    return ksr_collective(masked<T>{value, mask}, lane, exchange<T>, site(at, what)).value;
}

// The first lane of this lane's group of `width`.
KSR_INLINE uint group_begin(uint lane, int width) { return lane & ~uint(width - 1); }

// All __syncwarp that name the same lanes are one place: lanes of two branches may meet there.
constexpr ksr_u64 warp_site(uint mask) { return KSR_NOWHERE | ksr_u64(mask) << KSR_COLUMN_AT | active; }
static_assert(KSR_PATH_AT - KSR_COLUMN_AT >= 32);

}  // namespace ksr

KSR_INLINE void __syncthreads(KSR_AT) { ksr_wait_at_barrier(ksr::site(ksr_at, ksr::barrier), ksr::kFences); }
KSR_INLINE int __syncthreads_count(int predicate, KSR_AT) {
    uint vote = predicate != 0;
    ksr_here()->votes += vote;
    ksr_wait_at_barrier(ksr::site(ksr_at, ksr::barrier), ksr::kFences);
    uint count = ksr_here()->votes;
    ksr_wait_at_barrier(ksr::site(ksr_at, ksr::some), ksr::kFences);
    ksr_here()->votes -= vote;  // before this thread votes again
    return int(count);
}
KSR_INLINE int __syncthreads_or(int predicate, KSR_AT) { return __syncthreads_count(predicate, ksr_at) != 0; }
KSR_INLINE int __syncthreads_and(int predicate, KSR_AT) { return __syncthreads_count(!predicate, ksr_at) == 0; }

KSR_INLINE void __syncwarp(unsigned int mask = ~0u, [[maybe_unused]] KSR_AT) {
    ksr_collective(ksr::masked<uint>{0, mask}, uint(ksr_at >> KSR_LINE_AT), ksr::meet_named, ksr::warp_site(mask));
}

template <class T> KSR_INLINE T __shfl_sync(unsigned int mask, T value, int from, int width = 32, KSR_AT) {
    uint lane = ksr_here()->lane;
    return ksr::from_lane(mask, value, ksr::group_begin(lane, width) + (uint(from) & uint(width - 1)), ksr_at, ksr::shuffle);
}
template <class T> KSR_INLINE T __shfl_up_sync(unsigned int mask, T value, unsigned int delta, int width = 32, KSR_AT) {
    uint lane = ksr_here()->lane, place = lane - ksr::group_begin(lane, width);
    return ksr::from_lane(mask, value, delta <= place ? lane - delta : lane, ksr_at, ksr::shuffle_up);
}
template <class T> KSR_INLINE T __shfl_down_sync(unsigned int mask, T value, unsigned int delta, int width = 32, KSR_AT) {
    uint lane = ksr_here()->lane, left = ksr::group_begin(lane, width) + uint(width) - 1 - lane;
    return ksr::from_lane(mask, value, delta <= left ? lane + delta : lane, ksr_at, ksr::shuffle_down);
}
// A lane of a later group of `width` is out of reach, one of an earlier is not.
template <class T> KSR_INLINE T __shfl_xor_sync(unsigned int mask, T value, int bits, int width = 32, KSR_AT) {
    uint lane = ksr_here()->lane, from = lane ^ uint(bits), last = ksr::group_begin(lane, width) + uint(width) - 1;
    return ksr::from_lane(mask, value, from <= last ? from : lane, ksr_at, ksr::shuffle_xor);
}

KSR_INLINE unsigned int __activemask(KSR_AT) { return ksr_collective<uint>(0, 0, ksr::meet, ksr::site(ksr_at, ksr::active)); }
KSR_INLINE unsigned int __ballot_sync(unsigned int mask, int predicate, KSR_AT) {
    return ksr_collective(ksr::masked<uint>{predicate != 0, mask}, 0, ksr::ballot_named, ksr::site(ksr_at, ksr::ballot)).value;
}
KSR_INLINE int __any_sync(unsigned int mask, int predicate, KSR_AT) {
    return ksr_collective(ksr::masked<uint>{predicate != 0, mask}, 0, ksr::ballot_named, ksr::site(ksr_at, ksr::some)).value != 0;
}
KSR_INLINE int __all_sync(unsigned int mask, int predicate, KSR_AT) {
    return ksr_collective(ksr::masked<uint>{predicate == 0, mask}, 0, ksr::ballot_named, ksr::site(ksr_at, ksr::every)).value == 0;
}
template <class T> KSR_INLINE ksr_u64 ksr_bits_of(T value) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "lanes match by values of 4 or 8 bytes");
    if constexpr (sizeof(T) == 8) return __builtin_bit_cast(ksr_u64, value);
    else return __builtin_bit_cast(uint, value);
}
template <class T> KSR_INLINE unsigned int __match_any_sync(unsigned int mask, T value, KSR_AT) {
    ksr::masked<ksr_u64> mine = {ksr_bits_of(value), mask};
    return uint(ksr_collective(mine, 0, ksr::match_named, ksr::site(ksr_at, ksr::quad_ballot)).value);
}
template <class T> KSR_INLINE unsigned int __match_all_sync(unsigned int mask, T value, int* all, KSR_AT) {
    ksr::masked<ksr_u64> mine = {ksr_bits_of(value), mask};
    auto same = ksr_collective(mine, 0, ksr::match_named, ksr::site(ksr_at, ksr::quad_active));
    *all = uint(same.value) == same.mask;
    return *all ? uint(same.value) : 0;
}

#define KSR_REDUCED(name, op, what, T)                                                                                 \
    KSR_INLINE T __reduce_##name##_sync(unsigned int mask, T value, KSR_AT) {                                          \
        return ksr_collective(ksr::masked<T>{value, mask}, 0, ksr::reduce_named<T, ksr::op<T>>, ksr::site(ksr_at, ksr::what)).value; \
    }
KSR_REDUCED(add, add, sum, unsigned int)
KSR_REDUCED(add, add, sum, int)
KSR_REDUCED(min, lesser, minimum, unsigned int)
KSR_REDUCED(min, lesser, minimum, int)
KSR_REDUCED(max, greater, maximum, unsigned int)
KSR_REDUCED(max, greater, maximum, int)
KSR_REDUCED(and, ands, bit_and, unsigned int)
KSR_REDUCED(or, ors, bit_or, unsigned int)
KSR_REDUCED(xor, xors, bit_xor, unsigned int)
#undef KSR_REDUCED

// The forms of before Volta: the lanes that are there take part.
#define KSR_LEGACY(name)                                                                                               \
    template <class T> KSR_INLINE T name(T value, int operand, int width = 32, KSR_AT) {                               \
        return name##_sync(__activemask(ksr_at), value, operand, width, ksr_at);                                       \
    }
KSR_LEGACY(__shfl)
KSR_LEGACY(__shfl_up)
KSR_LEGACY(__shfl_down)
KSR_LEGACY(__shfl_xor)
#undef KSR_LEGACY
KSR_INLINE unsigned int __ballot(int predicate, KSR_AT) { return __ballot_sync(__activemask(ksr_at), predicate, ksr_at); }
KSR_INLINE int __any(int predicate, KSR_AT) { return __any_sync(__activemask(ksr_at), predicate, ksr_at); }
KSR_INLINE int __all(int predicate, KSR_AT) { return __all_sync(__activemask(ksr_at), predicate, ksr_at); }

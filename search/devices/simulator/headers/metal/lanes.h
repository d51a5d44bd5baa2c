// Barriers, and what the lanes of a simdgroup or quadgroup do together.
#pragma once

namespace metal {

enum class mem_flags : uint {
    mem_none = 0,
    mem_device = 1,
    mem_threadgroup = 2,
    mem_texture = 4,
    mem_threadgroup_imageblock = 8,
    mem_object_data = 16,
};
constexpr mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(uint(a) | uint(b)); }
constexpr mem_flags operator&(mem_flags a, mem_flags b) { return mem_flags(uint(a) & uint(b)); }

enum thread_scope { thread_scope_thread, thread_scope_simdgroup, thread_scope_threadgroup, thread_scope_device };

}  // namespace metal

namespace ksr {

// Kinds of operation, so that two on one line are told apart.
enum kind : uint {
    barrier, simd_barrier, sum, product, maximum, minimum, bit_and, bit_or, bit_xor,
    inclusive_sum, exclusive_sum, inclusive_product, exclusive_product,
    shuffle, shuffle_xor, shuffle_up, shuffle_down, rotate_up, rotate_down, fill_up, fill_down,
    broadcast, first, ballot, active, every, some, quad_sum, quad_product, quad_maximum, quad_minimum,
    quad_and, quad_or, quad_xor, quad_shuffle, quad_shuffle_xor, quad_up, quad_down, quad_broadcast,
    matrix_load, matrix_store, matrix_product, quad_inclusive_sum, quad_exclusive_sum, quad_inclusive_product,
    quad_exclusive_product, quad_rotate_up, quad_rotate_down, quad_fill_up, quad_fill_down, quad_first, quad_ballot,
    quad_active, kinds
};
static_assert(kinds <= 1 << KSR_COLUMN_AT);
static_assert(simd_barrier == KSR_SIMDGROUP_BARRIER && matrix_product == KSR_MATRIX_PRODUCT);

constexpr ksr_u64 site(ksr_u64 place, kind what) { return place | what; }

constexpr uint kLanes = KSR_SIMD_WIDTH;
constexpr uint kQuad = 4;

template <class T> struct slots {
    ksr_u8* begin;
    KSR_INLINE T& operator[](uint lane) const { return *reinterpret_cast<T*>(begin + lane * KSR_SLOT_BYTES); }
};
template <class T> KSR_INLINE slots<T> values(ksr_simdgroup* group) { return {group->value}; }
template <class T> KSR_INLINE T* results(ksr_simdgroup* group) { return reinterpret_cast<T*>(group->result); }

template <class T> struct add { KSR_INLINE static T of(T a, T b) { return T(a + b); } static constexpr T start() { return T(0); } };
template <class T> struct multiply { KSR_INLINE static T of(T a, T b) { return T(a * b); } static constexpr T start() { return T(1); } };
template <class T> struct greater { KSR_INLINE static T of(T a, T b) { return metal::max(a, b); } };
template <class T> struct lesser { KSR_INLINE static T of(T a, T b) { return metal::min(a, b); } };
template <class T> struct ands { KSR_INLINE static T of(T a, T b) { return T(a & b); } };
template <class T> struct ors { KSR_INLINE static T of(T a, T b) { return T(a | b); } };
template <class T> struct xors { KSR_INLINE static T of(T a, T b) { return T(a ^ b); } };

template <class T> struct combined_as { typedef T type; };
template <> struct combined_as<bfloat> { typedef float type; };

// Combines the active lanes of each group of `Width` in a tree, as hardware does, and gives all of them the result.
template <class T, class Op, uint Width> KSR_UNCOUNTED void reduce(ksr_simdgroup* group, ksr_u32 active) {
    if constexpr (Width == kLanes) KSR_COUNT(reductions, 1);
    else KSR_COUNT(shuffles, 2);
    const slots<T> value = values<T>(group);
    T* result = results<T>(group);
    if (active == ~0u) {
        T tree[kLanes];
        for (uint i = 0; i < kLanes; ++i) tree[i] = value[i];
        for (uint step = 1; step < Width; step *= 2)
            for (uint i = 0; i < kLanes; i += 2 * step) tree[i] = Op::of(tree[i], tree[i + step]);
        for (uint i = 0; i < kLanes; ++i) result[i] = tree[i / Width * Width];
        return;
    }
    for (uint begin = 0; begin < kLanes; begin += Width) {
        T tree[Width];
        uint members = active >> begin & uint((1ull << Width) - 1);
        for (uint i = 0; i < Width; ++i) tree[i] = value[begin + i];
        for (uint step = 1; step < Width; step *= 2)
            for (uint i = 0; i < Width; i += 2 * step) {
                bool left = members >> i & 1, right = members >> (i + step) & 1;
                if (left && right) tree[i] = Op::of(tree[i], tree[i + step]);
                if (!left && right) tree[i] = tree[i + step];
                if (right) members |= 1u << i;
            }
        for (uint i = 0; i < Width; ++i) result[begin + i] = tree[0];
    }
}

template <class T, class Op, bool Inclusive, uint Width> KSR_UNCOUNTED void scan(ksr_simdgroup* group, ksr_u32 active) {
    KSR_COUNT(reductions, 1);
    T sum = Op::start();
    for (uint i = 0; i < kLanes; ++i) {
        if (i % Width == 0) sum = Op::start();
        if (!(active >> i & 1)) continue;
        if (!Inclusive) results<T>(group)[i] = sum;
        sum = Op::of(sum, values<T>(group)[i]);
        if (Inclusive) results<T>(group)[i] = sum;
    }
}

// A lane that asks for the value of one that takes no part gets the poison that uninitialised memory has.
template <class T> KSR_INLINE void take(ksr_simdgroup* group, ksr_u32 active, uint lane, uint from) {
    if (active >> from & 1) {
        results<T>(group)[lane] = values<T>(group)[from];
    } else {
#ifdef KSR_CHECKED
        ksr_absent_lane(group, lane, from);
#endif
        uchar* result = reinterpret_cast<uchar*>(&results<T>(group)[lane]);
        for (uint i = 0; i < sizeof(T); ++i) result[i] = i % 2 ? 0xFF : 0xD5;
    }
}

// How each kind of shuffle finds the lane to read; kLanes means the lane's own value.
struct by_index { KSR_INLINE static uint from(uint, uint operand) { return operand % kLanes; } };
struct by_xor { KSR_INLINE static uint from(uint lane, uint operand) { return (lane ^ operand) % kLanes; } };
struct from_below { KSR_INLINE static uint from(uint lane, uint operand) { return lane >= operand ? lane - operand : kLanes; } };
struct from_above { KSR_INLINE static uint from(uint lane, uint operand) { return lane + operand < kLanes ? lane + operand : kLanes; } };
struct around_below { KSR_INLINE static uint from(uint lane, uint operand) { return (lane - operand) % kLanes; } };
struct around_above { KSR_INLINE static uint from(uint lane, uint operand) { return (lane + operand) % kLanes; } };
struct in_quad { KSR_INLINE static uint from(uint lane, uint operand) { return lane / kQuad * kQuad + operand % kQuad; } };
struct quad_by_xor { KSR_INLINE static uint from(uint lane, uint operand) { return lane / kQuad * kQuad + (lane ^ operand) % kQuad; } };
struct quad_below { KSR_INLINE static uint from(uint lane, uint operand) { return lane % kQuad >= operand ? lane - operand : kLanes; } };
struct quad_above { KSR_INLINE static uint from(uint lane, uint operand) { return lane % kQuad + operand < kQuad ? lane + operand : kLanes; } };
struct quad_around_below { KSR_INLINE static uint from(uint lane, uint operand) { return lane / kQuad * kQuad + (lane - operand) % kQuad; } };
struct quad_around_above { KSR_INLINE static uint from(uint lane, uint operand) { return lane / kQuad * kQuad + (lane + operand) % kQuad; } };

template <class T, class Source> KSR_UNCOUNTED void move(ksr_simdgroup* group, ksr_u32 active) {
    KSR_COUNT(shuffles, 1);
    for (uint rest = active; rest; rest &= rest - 1) {
        uint lane = uint(__builtin_ctz(rest));
        uint from = Source::from(lane, group->operand[lane]);
        take<T>(group, active, lane, from == kLanes ? lane : from);
    }
}

template <class T> KSR_UNCOUNTED void move_first(ksr_simdgroup* group, ksr_u32 active) {
    KSR_COUNT(shuffles, 1);
    uint first = uint(__builtin_ctz(active));
    for (uint i = 0; i < kLanes; ++i) results<T>(group)[i] = values<T>(group)[first];
}

KSR_UNCOUNTED inline void vote(ksr_simdgroup* group, ksr_u32 active) {
    KSR_COUNT(shuffles, 1);
    uint mask = 0;
    for (uint rest = active; rest; rest &= rest - 1) {
        uint lane = uint(__builtin_ctz(rest));
        if (values<uint>(group)[lane]) mask |= 1u << lane;
    }
    for (uint i = 0; i < kLanes; ++i) results<uint>(group)[i] = mask;
}

KSR_UNCOUNTED inline void meet(ksr_simdgroup* group, ksr_u32 active) {
    for (uint i = 0; i < kLanes; ++i) results<uint>(group)[i] = active;
}

}  // namespace ksr


namespace metal {

KSR_INLINE void threadgroup_barrier(mem_flags fence, KSR_AT) {
    ksr_wait_at_barrier(ksr::site(ksr_at, ksr::barrier), uint(fence));
}
KSR_INLINE void threadgroup_barrier(mem_flags fence, thread_scope, KSR_AT) {
    threadgroup_barrier(fence, ksr_at);
}
KSR_INLINE void simdgroup_barrier(mem_flags, KSR_AT) {
    ksr_collective<uint>(0, 0, ksr::meet, ksr::site(ksr_at, ksr::simd_barrier));
}

}  // namespace metal

namespace ksr {

// What these operations take: no 64-bit integer, but where MLX adds that (`widely`), or a complex number. The language's
// specification leaves out bool; Apple's compiler moves it between lanes (`moved`), and only what combines lanes can't.
template <class T> struct component_of { typedef T type; };
template <class T, int N> struct component_of<metal::vec<T, N>> { typedef T type; };
template <class T> constexpr bool exchanged =
    arithmetic<typename component_of<T>::type> && !__is_same(typename component_of<T>::type, bool) &&
    sizeof(typename component_of<T>::type) <= 4;
template <class T> constexpr bool moved = exchanged<T> || __is_same(typename component_of<T>::type, bool);
template <class T> constexpr bool widely = moved<T> || is_integer<T>::value || requires(T value) { value.imag; };
#define KSR_EXCHANGED(operation, types)                                                                                \
    static_assert(ksr::types<T>, "Metal has no " #operation " of this type: bool, 64-bit integers and structs must be " \
                                 "converted, or go in parts (as_type<uint2>)")

}  // namespace ksr

namespace metal {

// bfloat is combined in float and rounded once, which is how MLX has Metal do it.
#define KSR_COMBINED(name, what, combine, op, ...)                                                                     \
    template <class T> KSR_INLINE T name(T value, KSR_AT) {                                                            \
        KSR_EXCHANGED(name, exchanged);                                                                                \
        typedef typename ksr::combined_as<T>::type as;                                                                 \
        return T(ksr_collective(as(value), 0, ksr::combine<as, ksr::op<as>, __VA_ARGS__>, ksr::site(ksr_at, ksr::what))); \
    }
#define KSR_REDUCTION(name, op, what, quad_what)                                                                       \
    KSR_COMBINED(simd_##name, what, reduce, op, 32)                                                                    \
    KSR_COMBINED(quad_##name, quad_what, reduce, op, 4)
KSR_REDUCTION(sum, add, sum, quad_sum)
KSR_REDUCTION(product, multiply, product, quad_product)
KSR_REDUCTION(max, greater, maximum, quad_maximum)
KSR_REDUCTION(min, lesser, minimum, quad_minimum)
KSR_REDUCTION(and, ands, bit_and, quad_and)
KSR_REDUCTION(or, ors, bit_or, quad_or)
KSR_REDUCTION(xor, xors, bit_xor, quad_xor)
#undef KSR_REDUCTION

#define KSR_SCAN(name, op, inclusive, what)                                                                            \
    KSR_COMBINED(simd_prefix_##name, what, scan, op, inclusive, 32)                                                    \
    KSR_COMBINED(quad_prefix_##name, quad_##what, scan, op, inclusive, 4)
KSR_SCAN(inclusive_sum, add, true, inclusive_sum)
KSR_SCAN(exclusive_sum, add, false, exclusive_sum)
KSR_SCAN(inclusive_product, multiply, true, inclusive_product)
KSR_SCAN(exclusive_product, multiply, false, exclusive_product)
#undef KSR_SCAN
#undef KSR_COMBINED

#define KSR_SHUFFLE(name, source, what, types)                                                                         \
    template <class T> KSR_INLINE T name(T value, ushort operand, KSR_AT) {                                            \
        KSR_EXCHANGED(name, types);                                                                                    \
        return ksr_collective(value, operand, ksr::move<T, ksr::source>, ksr::site(ksr_at, ksr::what));              \
    }
KSR_SHUFFLE(simd_shuffle, by_index, shuffle, widely)
KSR_SHUFFLE(simd_shuffle_xor, by_xor, shuffle_xor, moved)
KSR_SHUFFLE(simd_shuffle_up, from_below, shuffle_up, widely)
KSR_SHUFFLE(simd_shuffle_down, from_above, shuffle_down, widely)
KSR_SHUFFLE(simd_shuffle_rotate_up, around_below, rotate_up, moved)
KSR_SHUFFLE(simd_shuffle_rotate_down, around_above, rotate_down, moved)
KSR_SHUFFLE(simd_broadcast, by_index, broadcast, moved)
KSR_SHUFFLE(quad_shuffle, in_quad, quad_shuffle, moved)
KSR_SHUFFLE(quad_shuffle_xor, quad_by_xor, quad_shuffle_xor, moved)
KSR_SHUFFLE(quad_shuffle_up, quad_below, quad_up, moved)
KSR_SHUFFLE(quad_shuffle_down, quad_above, quad_down, moved)
KSR_SHUFFLE(quad_shuffle_rotate_up, quad_around_below, quad_rotate_up, moved)
KSR_SHUFFLE(quad_shuffle_rotate_down, quad_around_above, quad_rotate_down, moved)
KSR_SHUFFLE(quad_broadcast, in_quad, quad_broadcast, moved)
#undef KSR_SHUFFLE

// Lanes that have no lane so far below (above) them, within each `modulo` of lanes, take the filling value of the lane that
// far around the end.
#define KSR_FILL(width, name, around, what, lanes, types)                                                              \
    template <class T>                                                                                                 \
    KSR_INLINE T width##_shuffle_and_fill_##name(T value, T filling, ushort delta, ushort modulo = lanes, KSR_AT) {    \
        KSR_EXCHANGED(width##_shuffle_and_fill_##name, types);                                                         \
        uint lane = ksr_here()->lane % modulo, from = lane around delta;                                               \
        uint source = ksr_here()->lane - lane + from % modulo;                                                         \
        T filled = ksr_collective(filling, source, ksr::move<T, ksr::by_index>, ksr::site(ksr_at, ksr::what));       \
        T moved = ksr_collective(value, source, ksr::move<T, ksr::by_index>, ksr::site(ksr_at, ksr::what));          \
        return from < modulo ? moved : filled;                                                                         \
    }
KSR_FILL(simd, up, -, fill_up, 32, widely)
KSR_FILL(simd, down, +, fill_down, 32, moved)
KSR_FILL(quad, up, -, quad_fill_up, 4, moved)
KSR_FILL(quad, down, +, quad_fill_down, 4, moved)
#undef KSR_FILL

template <class T> KSR_INLINE T simd_broadcast_first(T value, KSR_AT) {
    KSR_EXCHANGED(simd_broadcast_first, moved);
    return ksr_collective(value, 0, ksr::move_first<T>, ksr::site(ksr_at, ksr::first));
}

// A set of lanes.
struct simd_vote {
    typedef ulong vote_t;
    vote_t ksr_mask;
    simd_vote() = default;
    constexpr explicit simd_vote(vote_t mask) : ksr_mask(mask) {}
    constexpr explicit operator vote_t() const { return ksr_mask; }
    constexpr explicit operator uint() const { return uint(ksr_mask); }
    constexpr bool all() const { return uint(ksr_mask) == ~0u; }
    constexpr bool any() const { return ksr_mask != 0; }
};

KSR_INLINE simd_vote simd_ballot(bool vote, KSR_AT) {
    return simd_vote(ksr_collective<uint>(vote, 0, ksr::vote, ksr::site(ksr_at, ksr::ballot)));
}
KSR_INLINE simd_vote simd_active_threads_mask(KSR_AT) {
    return simd_vote(ksr_collective<uint>(0, 0, ksr::meet, ksr::site(ksr_at, ksr::active)));
}
KSR_INLINE bool simd_all(bool vote, KSR_AT) {
    return ksr_collective<uint>(!vote, 0, ksr::vote, ksr::site(ksr_at, ksr::every)) == 0;
}
KSR_INLINE bool simd_any(bool vote, KSR_AT) {
    return ksr_collective<uint>(vote, 0, ksr::vote, ksr::site(ksr_at, ksr::some)) != 0;
}
KSR_INLINE bool simd_is_first(KSR_AT) {
    uint lane = ksr_here()->lane;
    uint mask = ksr_collective<uint>(0, 0, ksr::meet, ksr::site(ksr_at, ksr::first));
    return uint(__builtin_ctz(mask)) == lane;
}

// The same for the four lanes of a quadgroup.
struct quad_vote {
    typedef ulong vote_t;
    vote_t ksr_mask;
    quad_vote() = default;
    constexpr explicit quad_vote(vote_t mask) : ksr_mask(mask) {}
    constexpr explicit operator vote_t() const { return ksr_mask; }
    constexpr explicit operator uint() const { return uint(ksr_mask); }
    constexpr bool all() const { return ksr_mask == 15; }
    constexpr bool any() const { return ksr_mask != 0; }
};

KSR_INLINE quad_vote quad_ballot(bool vote, KSR_AT) {
    uint first = ksr_here()->lane / 4 * 4;
    return quad_vote(ksr_collective<uint>(vote, 0, ksr::vote, ksr::site(ksr_at, ksr::quad_ballot)) >> first & 15);
}
KSR_INLINE quad_vote quad_active_threads_mask(KSR_AT) {
    uint first = ksr_here()->lane / 4 * 4;
    return quad_vote(ksr_collective<uint>(0, 0, ksr::meet, ksr::site(ksr_at, ksr::quad_active)) >> first & 15);
}
KSR_INLINE bool quad_all(bool vote, KSR_AT) { return !quad_ballot(!vote, ksr_at).any(); }
KSR_INLINE bool quad_any(bool vote, KSR_AT) { return quad_ballot(vote, ksr_at).any(); }
KSR_INLINE bool quad_is_first(KSR_AT) {
    uint place = ksr_here()->lane % 4;
    return uint(__builtin_ctz(uint(quad_active_threads_mask(ksr_at).ksr_mask))) == place;
}
template <class T> KSR_INLINE T quad_broadcast_first(T value, KSR_AT) {
    KSR_EXCHANGED(quad_broadcast_first, moved);
    uint first = ksr_here()->lane / 4 * 4;
    uint place = first + uint(__builtin_ctz(uint(quad_active_threads_mask(ksr_at).ksr_mask)));
    return ksr_collective(value, place, ksr::move<T, ksr::by_index>, ksr::site(ksr_at, ksr::quad_first));
}

}  // namespace metal

namespace ksr {

// Where a threadgroup variable of this threadgroup is: as far into its memory as the variable is into their section.
#if defined(__APPLE__)
extern "C" char ksr_threadgroup_begin[] asm("section$start$__DATA$ksr_tg");
extern "C" char ksr_threadgroup_end[] asm("section$end$__DATA$ksr_tg");
extern "C" char ksr_zones_begin[] asm("section$start$__DATA$ksr_zone");
extern "C" char ksr_zones_end[] asm("section$end$__DATA$ksr_zone");
#elif defined(KSR_CUDA) && !defined(__clang__)
// GCC leaves out the section of variables in templates, so all of a CUDA kernel's are where zeros go anyway.
extern "C" char ksr_threadgroup_begin[] asm("__bss_start") __attribute__((visibility("hidden")));
extern "C" char ksr_threadgroup_end[] asm("_end") __attribute__((visibility("hidden")));
#else
// Weak: a kernel whose only variables are in branches that are left out has no such section.
#define KSR_WEAK __attribute__((visibility("hidden"), weak))
extern "C" char ksr_threadgroup_begin[] asm("__start_ksr_tg") KSR_WEAK;
extern "C" char ksr_threadgroup_end[] asm("__stop_ksr_tg") KSR_WEAK;
extern "C" char ksr_zones_begin[] asm("__start_ksr_zone") KSR_WEAK;
extern "C" char ksr_zones_end[] asm("__stop_ksr_zone") KSR_WEAK;
#undef KSR_WEAK
#endif
template <class T> struct room {
    alignas(T) unsigned char bytes[sizeof(T)];
#ifdef KSR_CHECKED
    unsigned char zone[KSR_ZONE_BYTES];
#endif
};
template <class T> struct element { typedef T type; };
template <class T, unsigned long N> struct element<T[N]> : element<T> {};
template <class T> struct row { typedef T type; };
template <class T, unsigned long N> struct row<T[N]> { typedef T type; };
// As aligned as threadgroup memory is: what is aligned in the one is so in the other.
KSR_INLINE char* storage_begin() {
#if defined(KSR_CUDA) && !defined(__clang__)
    return reinterpret_cast<char*>(reinterpret_cast<ksr_address>(ksr_threadgroup_begin) & ~ksr_address(63));
#else  // a section of its own begins as its variables need it
    return ksr_threadgroup_begin;
#endif
}
template <class T> KSR_INLINE T& threadgroup(room<T>& variable, [[maybe_unused]] const char* name) {
    auto offset = reinterpret_cast<char*>(&variable) - storage_begin();
#ifdef KSR_CHECKED
    const ksr_declared declared = {uint(offset), sizeof(T), sizeof(typename element<T>::type), sizeof(typename row<T>::type), name};
    ksr_declare(&declared);
#endif
    return *reinterpret_cast<T*>(ksr_here()->threadgroup_memory + offset);
}

}  // namespace ksr

#if defined(KSR_CUDA) && !defined(__clang__)
#define KSR_THREADGROUP static
#elif defined(__APPLE__)
#define KSR_THREADGROUP __attribute__((used, section("__DATA,ksr_tg"))) static
#define KSR_ZONES __attribute__((used, section("__DATA,ksr_zone"))) static
#else
#define KSR_THREADGROUP __attribute__((used, section("ksr_tg"))) static
#define KSR_ZONES __attribute__((used, section("ksr_zone"))) static
#endif
// Leaves a byte for each variable that is followed by a zone, to be counted where they all are known.
#ifdef KSR_CHECKED
#define KSR_HAS_ZONE(name) KSR_ZONES char ksr_zone_##name;
#else
#define KSR_HAS_ZONE(name)
#endif

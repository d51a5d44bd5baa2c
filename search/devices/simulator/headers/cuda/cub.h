// CUB's reductions and scans over a block or a warp, as its documentation has them and not as NVIDIA wrote them:
// - A reduction gives its value to the first thread alone; what others get is poison here, and so is what the first
//   thread gets of an exclusive scan without an initial value.
// - A block's operation is a barrier of the block, a warp's one of the warp: every thread of it must come.
// - The storage is shared memory, which every thread's value goes through. Using it again without a barrier is a race.
// Values are combined in the order of the threads, in groups of 32.
#pragma once

namespace ksr {

template <class F, class T> concept combines = requires(F f, T value) { T(f(value, value)); };
template <class F, class T> concept prefixes = requires(F f, T value) { T(f(value)); };

// A NaN, or a number that nobody expects; not what memory begins with, which isn't compared when something stored it.
template <class T> KSR_INLINE T poison() {
    T value;
    auto bytes = reinterpret_cast<volatile uchar*>(&value);
    for (uint i = 0; i < sizeof(T); ++i) bytes[i] = i % 2 ? 0xFF : 0xEB;
    return value;
}

// Room for a value of each thread, and for what a callback puts before them; a union may have it whatever T is.
template <class T, int Count> struct alignas(T) rooms {
    uchar bytes[sizeof(T) * (Count + 1)];
    KSR_INLINE T* values() { return reinterpret_cast<T*>(bytes); }
};

// The storage is read and written in the line of the call, wherever the compiler puts it. A copy isn't looked at for its
// alignment, which would come between.
template <class T> KSR_INLINE T kept(T* at, [[maybe_unused]] uint line) {
    T value;
    KSR_STANDS_IN(line);
    __builtin_memcpy(&value, at, sizeof(T));
    return value;
}
template <class T> KSR_INLINE void keep(T* at, T value, [[maybe_unused]] uint line) {
    KSR_STANDS_IN(line);
    __builtin_memcpy(at, &value, sizeof(T));
}

// The threads of a block by their numbers, x first, and how they wait for each other.
template <int X, int Y, int Z> struct whole_block {
    static constexpr int size = X * Y * Z;
    KSR_INLINE static int rank() {
        uint3 at = thread_index();
        return int((Z == 1 ? 0 : at.z * X * Y) + (Y == 1 ? 0 : at.y * X) + at.x);
    }
    KSR_INLINE static void wait(ksr_called at, kind what) { ksr_wait_at_barrier(site(at.place, what), kFences); }
};

// The same for each `Width` lanes of a warp.
template <int Width> struct part_of_warp {
    static_assert(Width >= 1 && Width <= 32, "a logical warp has at most 32 threads");
    static constexpr int size = Width;
    KSR_INLINE static int rank() { return int(ksr_here()->lane % Width); }
    KSR_INLINE static void wait(ksr_called at, kind) {
        uint lane = ksr_here()->lane;
        ulong full = ((1ull << Width) - 1) << (lane - lane % Width);
        __syncwarp(uint(full), at.place);
    }
};

template <class T, class Op, int Items> KSR_INLINE T of_items(const T (&items)[Items], Op op) {
    T result = items[0];
    for (int i = 1; i < Items; ++i) result = op(result, items[i]);
    return result;
}

// What all threads have together, as the first of `valid` of them gets it.
template <class Team, class T, class Op> KSR_INLINE T reduced(T* values, T own, Op op, int valid, ksr_called at, uint line) {
    int rank = Team::rank();
    keep(values + rank, own, line);
    Team::wait(at, barrier);
    if (rank != 0 || valid < 1) return poison<T>();
    T total = own;
    for (int begin = 0; begin < valid; begin += 32) {
        T part = begin ? kept(values + begin, line) : own;
        for (int i = begin + 1; i < begin + 32 && i < valid; ++i) part = op(part, kept(values + i, line));
        total = begin ? T(op(total, part)) : part;
    }
    return total;
}

// What the threads before this one have together, which the first has nothing of, and what all have.
template <class T> struct scanned {
    T before, all;
    bool first;
};

template <class Team, class T, class Op> KSR_INLINE scanned<T> scan_over(T* values, T own, Op op, ksr_called at, uint line) {
    int rank = Team::rank();
    keep(values + rank, own, line);
    Team::wait(at, barrier);
    if (rank == 0) {
        T before = own;
        for (int begin = 0; begin < Team::size; begin += 32) {
            T part = kept(values + begin, line), upto = part;
            for (int i = begin; i < begin + 32 && i < Team::size; ++i) {
                if (i > begin) part = op(part, kept(values + i, line));
                upto = begin ? T(op(before, part)) : part;
                keep(values + i, upto, line);
            }
            before = upto;
        }
    }
    Team::wait(at, some);
    return {rank ? kept(values + rank - 1, line) : poison<T>(), kept(values + Team::size - 1, line), rank == 0};
}

// Puts what the callback gives the first lane before everything; the first warp calls it.
template <class Team, class T, class Op, class Callback>
KSR_INLINE void put_before(scanned<T>& found, T* values, Op op, Callback& callback, ksr_called at, uint line) {
    int rank = Team::rank();
    if (rank < 32) {
        T given = callback(found.all);
        if (rank == 0) keep(values + Team::size, given, line);
    }
    Team::wait(at, every);
    T prefix = kept(values + Team::size, line);
    found.before = found.first ? prefix : T(op(prefix, found.before));
    found.first = false;
}

template <class T, class Op> KSR_INLINE void put_initial(scanned<T>& found, T initial, Op op) {
    found.before = found.first ? initial : T(op(initial, found.before));
    found.first = false;
}

template <class T, class Op, int Items>
KSR_INLINE void inclusive_items(const scanned<T>& found, const T (&in)[Items], T (&out)[Items], Op op) {
    T upto = in[0];
    if (!found.first) upto = op(found.before, upto);
    out[0] = upto;
    for (int i = 1; i < Items; ++i) out[i] = upto = op(upto, in[i]);
}

template <class T, class Op, int Items>
KSR_INLINE void exclusive_items(const scanned<T>& found, const T (&in)[Items], T (&out)[Items], Op op) {
    T before = found.before;
    for (int i = 0; i < Items; ++i) {
        T own = in[i];
        out[i] = before;
        before = found.first && i == 0 ? own : T(op(before, own));
    }
}

}  // namespace ksr

namespace cub {

enum BlockReduceAlgorithm {
    BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
    BLOCK_REDUCE_RAKING,
    BLOCK_REDUCE_WARP_REDUCTIONS,
    BLOCK_REDUCE_WARP_REDUCTIONS_NONDETERMINISTIC,
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

struct Sum { template <class T> KSR_INLINE T operator()(const T& a, const T& b) const { return T(a + b); } };
struct Max { template <class T> KSR_INLINE T operator()(const T& a, const T& b) const { return b > a ? b : a; } };
struct Min { template <class T> KSR_INLINE T operator()(const T& a, const T& b) const { return b < a ? b : a; } };

template <class Key, class Value> struct KeyValuePair {
    typedef Key Key_;
    typedef Value Value_;
    Key key;
    Value value;
    KeyValuePair() = default;
    KSR_INLINE KeyValuePair(const Key& key, const Value& value) : key(key), value(value) {}
};
// Of equal values the one with the smaller key.
struct ArgMax {
    template <class K, class V> KSR_INLINE KeyValuePair<K, V> operator()(const KeyValuePair<K, V>& a, const KeyValuePair<K, V>& b) const {
        return b.value > a.value || (a.value == b.value && b.key < a.key) ? b : a;
    }
};
struct ArgMin {
    template <class K, class V> KSR_INLINE KeyValuePair<K, V> operator()(const KeyValuePair<K, V>& a, const KeyValuePair<K, V>& b) const {
        return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a;
    }
};

// A reduction over the threads of `Team`.
template <class T, class Team> class ksr_reduction {
    T* values;

public:
    struct TempStorage : ksr::rooms<T, Team::size> {};
    KSR_INLINE explicit ksr_reduction(TempStorage& storage) : values(storage.values()) {}

    template <class Op> requires ksr::combines<Op, T> KSR_INLINE T Reduce(T value, Op op, KSR_CALLED, KSR_IN_LINE) {
        return ksr::reduced<Team>(values, value, op, Team::size, ksr_at, ksr_line);
    }
    template <class Op> requires ksr::combines<Op, T> KSR_INLINE T Reduce(T value, Op op, int valid, KSR_CALLED, KSR_IN_LINE) {
        return ksr::reduced<Team>(values, value, op, valid, ksr_at, ksr_line);
    }
    template <class Op, int Items> requires ksr::combines<Op, T> KSR_INLINE T Reduce(T (&items)[Items], Op op, KSR_CALLED, KSR_IN_LINE) {
        return ksr::reduced<Team>(values, ksr::of_items(items, op), op, Team::size, ksr_at, ksr_line);
    }
    KSR_INLINE T Sum(T value, KSR_CALLED, KSR_IN_LINE) { return Reduce(value, cub::Sum(), ksr_at, ksr_line); }
    KSR_INLINE T Sum(T value, int valid, KSR_CALLED, KSR_IN_LINE) { return Reduce(value, cub::Sum(), valid, ksr_at, ksr_line); }
    template <int Items> KSR_INLINE T Sum(T (&items)[Items], KSR_CALLED, KSR_IN_LINE) { return Reduce(items, cub::Sum(), ksr_at, ksr_line); }
};

// A scan over the threads of `Team`; items of a thread follow those of the threads before. `tail` takes what all have
// together, or is a callback that is given this and gives what comes before everything.
template <class T, class Team> class ksr_scan {
    T* values;

    template <class Tail> static constexpr bool ends = __is_same(Tail, T) || ksr::prefixes<Tail, T>;
    KSR_INLINE static T (&one(T& value))[1] { return reinterpret_cast<T(&)[1]>(value); }
    template <class Op, int Items> KSR_INLINE ksr::scanned<T> over(T (&in)[Items], Op op, ksr_called at, uint line) {
        return ksr::scan_over<Team>(values, ksr::of_items(in, op), op, at, line);
    }
    template <class Op, class Tail> KSR_INLINE void finish(ksr::scanned<T>& found, Op op, Tail& tail, ksr_called at, uint line) {
        if constexpr (__is_same(Tail, T)) tail = found.all;
        else ksr::put_before<Team>(found, values, op, tail, at, line);
    }

public:
    struct TempStorage : ksr::rooms<T, Team::size> {};
    KSR_INLINE explicit ksr_scan(TempStorage& storage) : values(storage.values()) {}

    template <class Op, int N> requires ksr::combines<Op, T>
    KSR_INLINE void InclusiveScan(T (&in)[N], T (&out)[N], Op op, KSR_CALLED, KSR_IN_LINE) {
        ksr::inclusive_items(over(in, op, ksr_at, ksr_line), in, out, op);
    }
    template <class Op, class Tail, int N> requires(ksr::combines<Op, T> && ends<Tail>)
    KSR_INLINE void InclusiveScan(T (&in)[N], T (&out)[N], Op op, Tail& tail, KSR_CALLED, KSR_IN_LINE) {
        ksr::scanned<T> found = over(in, op, ksr_at, ksr_line);
        finish(found, op, tail, ksr_at, ksr_line);
        ksr::inclusive_items(found, in, out, op);
    }
    template <class Op, int N> requires ksr::combines<Op, T>
    KSR_INLINE void ExclusiveScan(T (&in)[N], T (&out)[N], Op op, KSR_CALLED, KSR_IN_LINE) {
        ksr::exclusive_items(over(in, op, ksr_at, ksr_line), in, out, op);
    }
    template <class Op, class Tail, int N> requires(ksr::combines<Op, T> && ends<Tail>)
    KSR_INLINE void ExclusiveScan(T (&in)[N], T (&out)[N], Op op, Tail& tail, KSR_CALLED, KSR_IN_LINE) {
        ksr::scanned<T> found = over(in, op, ksr_at, ksr_line);
        finish(found, op, tail, ksr_at, ksr_line);
        ksr::exclusive_items(found, in, out, op);
    }
    template <class Op, int N> requires ksr::combines<Op, T>
    KSR_INLINE void ExclusiveScan(T (&in)[N], T (&out)[N], T initial, Op op, KSR_CALLED, KSR_IN_LINE) {
        T all;
        ExclusiveScan(in, out, initial, op, all, ksr_at, ksr_line);
    }
    template <class Op, int N> requires ksr::combines<Op, T>
    KSR_INLINE void ExclusiveScan(T (&in)[N], T (&out)[N], T initial, Op op, T& all, KSR_CALLED, KSR_IN_LINE) {
        ksr::scanned<T> found = over(in, op, ksr_at, ksr_line);
        all = found.all;
        ksr::put_initial(found, initial, op);
        ksr::exclusive_items(found, in, out, op);
    }
    template <int N> KSR_INLINE void InclusiveSum(T (&in)[N], T (&out)[N], KSR_CALLED, KSR_IN_LINE) { InclusiveScan(in, out, Sum(), ksr_at, ksr_line); }
    template <class Tail, int N> requires ends<Tail>
    KSR_INLINE void InclusiveSum(T (&in)[N], T (&out)[N], Tail& tail, KSR_CALLED, KSR_IN_LINE) { InclusiveScan(in, out, Sum(), tail, ksr_at, ksr_line); }
    template <int N> KSR_INLINE void ExclusiveSum(T (&in)[N], T (&out)[N], KSR_CALLED, KSR_IN_LINE) { ExclusiveScan(in, out, T(), Sum(), ksr_at, ksr_line); }
    template <class Tail, int N> requires ends<Tail>
    KSR_INLINE void ExclusiveSum(T (&in)[N], T (&out)[N], Tail& tail, KSR_CALLED, KSR_IN_LINE) {
        if constexpr (__is_same(Tail, T)) ExclusiveScan(in, out, T(), Sum(), tail, ksr_at, ksr_line);
        else ExclusiveScan(in, out, Sum(), tail, ksr_at, ksr_line);
    }

    template <class Op> requires ksr::combines<Op, T> KSR_INLINE void InclusiveScan(T in, T& out, Op op, KSR_CALLED, KSR_IN_LINE) {
        InclusiveScan(one(in), one(out), op, ksr_at, ksr_line);
    }
    template <class Op, class Tail> requires(ksr::combines<Op, T> && ends<Tail>)
    KSR_INLINE void InclusiveScan(T in, T& out, Op op, Tail& tail, KSR_CALLED, KSR_IN_LINE) {
        InclusiveScan(one(in), one(out), op, tail, ksr_at, ksr_line);
    }
    template <class Op> requires ksr::combines<Op, T> KSR_INLINE void ExclusiveScan(T in, T& out, Op op, KSR_CALLED, KSR_IN_LINE) {
        ExclusiveScan(one(in), one(out), op, ksr_at, ksr_line);
    }
    template <class Op, class Tail> requires(ksr::combines<Op, T> && ends<Tail>)
    KSR_INLINE void ExclusiveScan(T in, T& out, Op op, Tail& tail, KSR_CALLED, KSR_IN_LINE) {
        ExclusiveScan(one(in), one(out), op, tail, ksr_at, ksr_line);
    }
    template <class Op> requires ksr::combines<Op, T> KSR_INLINE void ExclusiveScan(T in, T& out, T initial, Op op, KSR_CALLED, KSR_IN_LINE) {
        ExclusiveScan(one(in), one(out), initial, op, ksr_at, ksr_line);
    }
    template <class Op> requires ksr::combines<Op, T>
    KSR_INLINE void ExclusiveScan(T in, T& out, T initial, Op op, T& all, KSR_CALLED, KSR_IN_LINE) {
        ExclusiveScan(one(in), one(out), initial, op, all, ksr_at, ksr_line);
    }
    KSR_INLINE void InclusiveSum(T in, T& out, KSR_CALLED, KSR_IN_LINE) { InclusiveSum(one(in), one(out), ksr_at, ksr_line); }
    template <class Tail> requires ends<Tail> KSR_INLINE void InclusiveSum(T in, T& out, Tail& tail, KSR_CALLED, KSR_IN_LINE) {
        InclusiveSum(one(in), one(out), tail, ksr_at, ksr_line);
    }
    KSR_INLINE void ExclusiveSum(T in, T& out, KSR_CALLED, KSR_IN_LINE) { ExclusiveSum(one(in), one(out), ksr_at, ksr_line); }
    template <class Tail> requires ends<Tail> KSR_INLINE void ExclusiveSum(T in, T& out, Tail& tail, KSR_CALLED, KSR_IN_LINE) {
        ExclusiveSum(one(in), one(out), tail, ksr_at, ksr_line);
    }
};

template <class T, int X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1, int = 0>
using BlockReduce = ksr_reduction<T, ksr::whole_block<X, Y, Z>>;
template <class T, int X, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int = 0>
using BlockScan = ksr_scan<T, ksr::whole_block<X, Y, Z>>;
template <class T, int Width = 32, int = 0> using WarpReduce = ksr_reduction<T, ksr::part_of_warp<Width>>;
template <class T, int Width = 32, int = 0> using WarpScan = ksr_scan<T, ksr::part_of_warp<Width>>;

}  // namespace cub

// Newer CUDA's own names for the same.
namespace cuda {

template <class T = void> struct maximum : cub::Max {};
template <class T = void> struct minimum : cub::Min {};
namespace std {
template <class T = void> struct plus : cub::Sum {};
}  // namespace std

}  // namespace cuda

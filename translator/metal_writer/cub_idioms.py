"""Reductions and scans over simdgroups and threadgroups, as functions for the header."""

from __future__ import annotations

from dataclasses import dataclass

PREFIX = "__cub_"
"""What the calls begin with that `cub_source` writes."""
_EXTREMA = ("max", "min")


def _of_threadgroup(word: str) -> str:
    """Return the reduction over a threadgroup that a simdgroup has by itself: ``sum``, ``max`` or ``min``."""
    # An extremum may be asked for twice, a sum not.
    part = "slots[min(lane, (valid - 1) / 32)]" if word in _EXTREMA else "lane <= (valid - 1) / 32 ? slots[lane] : T(0)"
    return (
        f"// The {word} over the threads below `valid`, for thread 0; `slots` has one for each simdgroup.\n"
        "template <typename T>\n"
        f"inline T threadgroup_{word}(T value, threadgroup T* slots, uint simdgroup, uint lane, uint valid) {{\n"
        f"    if (32 * simdgroup + lane < valid) value = simd_{word}(value);\n"
        "    if (lane == 0) slots[simdgroup] = value;\n"
        "    threadgroup_barrier(mem_flags::mem_threadgroup);\n"
        f"    T part = {part};\n"
        f"    return simd_{word}(part);\n"
        "}"
    )


CUB_IDIOMS = {
    "from_lane": """\
// The value of another lane of the simdgroup.
template <typename T>
inline T from_lane(T value, uint lane) {
    return simd_shuffle(value, ushort(lane));
}
inline bool from_lane(bool value, uint lane) {
    return bool(simd_shuffle(uint(value), ushort(lane)));
}
inline long from_lane(long value, uint lane) {
    return as_type<long>(simd_shuffle(as_type<uint2>(value), ushort(lane)));
}
inline ulong from_lane(ulong value, uint lane) {
    return as_type<ulong>(simd_shuffle(as_type<uint2>(value), ushort(lane)));
}""",
    "CubSum": """\
struct CubSum {
    template <typename T>
    T operator()(T a, T b) const { return T(a + b); }
};""",
    "CubMax": """\
struct CubMax {
    template <typename T>
    T operator()(T a, T b) const { return a < b ? b : a; }
};""",
    "CubMin": """\
struct CubMin {
    template <typename T>
    T operator()(T a, T b) const { return b < a ? b : a; }
};""",
    "items_together": """\
// What the items of a thread have together.
template <typename T, int Items, typename Op>
inline T items_together(const thread T (&items)[Items], Op op) {
    T result = items[0];
    for (int i = 1; i < Items; ++i) result = op(result, items[i]);
    return result;
}""",
    "simd_reduce": """\
// What the first `valid` lanes of each `width` lanes have together, in order, for the first of them.
template <typename T, typename Op>
inline T simd_reduce(T value, Op op, uint lane, uint width, uint valid) {
    for (uint step = 1; step < width; step *= 2) {
        bool joins = (lane & (width - 1)) + step < valid;
        T other = from_lane(value, joins ? lane + step : lane);
        if (joins) value = op(value, other);
    }
    return value;
}""",
    "threadgroup_sum": _of_threadgroup("sum"),
    "threadgroup_max": _of_threadgroup("max"),
    "threadgroup_min": _of_threadgroup("min"),
    "threadgroup_reduce": """\
// What the threads below `valid` have together, in order, for thread 0; `slots` has one for each simdgroup.
template <typename T, typename Op>
inline T threadgroup_reduce(T value, Op op, threadgroup T* slots, uint simdgroup, uint lane, uint valid) {
    value = simd_reduce(value, op, lane, 32, min(valid - min(valid, 32 * simdgroup), 32u));
    if (lane == 0) slots[simdgroup] = value;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = 1; i < (valid + 31) / 32; ++i) {
        T other = slots[i];
        value = op(value, other);
    }
    return value;
}""",
    "simd_scan": """\
// What the lanes up to this one have together, in order, within each `width` lanes.
template <typename T, typename Op>
inline T simd_scan(T value, Op op, uint lane, uint width) {
    for (uint step = 1; step < width; step *= 2) {
        bool joins = (lane & (width - 1)) >= step;
        T other = from_lane(value, joins ? lane - step : lane);
        if (joins) value = op(other, value);
    }
    return value;
}""",
    "SimdSum": """\
// Addition, which a simdgroup scans by itself.
struct SimdSum {
    template <typename T>
    T operator()(T a, T b) const { return T(a + b); }
};
template <typename T>
inline T simd_scan(T value, SimdSum, uint, uint) {
    return simd_prefix_inclusive_sum(value);
}""",
    "Scanned": """\
// What the threads before this one have together, which the first has nothing of, and what all have.
template <typename T>
struct Scanned {
    T before;
    T all;
    bool first;
};
template <typename T, typename Op>
inline void put_initial(thread Scanned<T>& found, T initial, Op op) {
    found.before = found.first ? initial : op(initial, found.before);
    found.first = false;
}""",
    "threadgroup_scan": """\
// Scans a value of each thread over the threadgroup; `slots` has one for each simdgroup.
template <typename T, typename Op>
inline Scanned<T> threadgroup_scan(T value, Op op, threadgroup T* slots, uint simdgroup, uint lane, uint threads) {
    T upto = simd_scan(value, op, lane, 32);
    if (lane == min(31u, threads - 1 - 32 * simdgroup)) slots[simdgroup] = upto;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    T earlier = slots[0];
    Scanned<T> found = {from_lane(upto, max(lane, 1u) - 1), earlier, simdgroup == 0 && lane == 0};
    for (uint i = 1; i < (threads + 31) / 32; ++i) {
        T other = slots[i];
        if (i == simdgroup) earlier = found.all;
        found.all = op(found.all, other);
    }
    if (simdgroup > 0) found.before = lane == 0 ? earlier : op(earlier, found.before);
    return found;
}""",
    "put_before": """\
// Puts what a callback makes of all before everything; `slot` is free.
template <typename T, typename Op, typename Callback>
inline void put_before(thread Scanned<T>& found, Op op, thread Callback& callback, threadgroup T& slot,
                       uint simdgroup, uint lane) {
    if (simdgroup == 0) {
        T given = callback(found.all);
        if (lane == 0) slot = given;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    T given = slot;
    put_initial(found, given, op);
}""",
    "simd_scan_over": """\
// Scans a value of each lane over `width` lanes.
template <typename T, typename Op>
inline Scanned<T> simd_scan_over(T value, Op op, uint lane, uint width) {
    T upto = simd_scan(value, op, lane, width);
    bool first = (lane & (width - 1)) == 0;
    return {from_lane(upto, first ? lane : lane - 1), from_lane(upto, lane | (width - 1)), first};
}""",
}


@dataclass(frozen=True, order=True)
class ScanFunction:
    """A scan over a ``threadgroup`` or ``simd``group, ``inclusive`` or ``exclusive``; of ``items`` of each thread.

    ``begin`` is what comes first: nothing, an ``initial`` value, or what a ``callback`` gives.
    """

    over: str
    kind: str
    items: bool
    begin: str

    @property
    def name(self) -> str:
        """The function's name; the forms with items are overloads."""
        return f"{self.over}_{self.kind}_scan{'_after' if self.begin == 'callback' else ''}"

    @property
    def needs(self) -> tuple[str, ...]:
        """The functions of `CUB_IDIOMS` that it calls."""
        scan = "threadgroup_scan" if self.over == "threadgroup" else "simd_scan_over"
        callback = ("put_before",) if self.begin == "callback" else ()
        return ("from_lane", "simd_scan", "Scanned", scan, *callback, *(("items_together",) if self.items else ()))

    @property
    def text(self) -> str:
        """The function; it returns what all have together."""
        block = self.over == "threadgroup"
        places = "slots, simdgroup, lane, threads" if block else "lane, width"
        declared = "threadgroup T* slots, uint simdgroup, uint lane, uint threads" if block else "uint lane, uint width"
        given = {"initial": "T initial, Op op", "callback": "Op op, thread Callback& callback"}.get(self.begin, "Op op")
        values = "T value, thread T& result"
        if self.items:
            values = "const thread T (&values)[Items], thread T (&results)[Items]"
        own = "items_together(values, op)" if self.items else "value"
        begin = {
            "initial": "    put_initial(found, initial, op);\n",
            "callback": "    put_before(found, op, callback, slots[(threads + 31) / 32], simdgroup, lane);\n",
        }.get(self.begin, "")
        types = "typename T" + ", int Items" * self.items + ", typename Op"
        types += ", typename Callback" * (self.begin == "callback")
        return (
            f"template <{types}>\n"
            f"inline T {self.name}({values}, {given}, {declared}) {{\n"
            f"    Scanned<T> found = {'threadgroup_scan' if block else 'simd_scan_over'}({own}, op, {places});\n"
            f"{begin}{_WRITTEN[self.kind, self.items]}"
            "    return found.all;\n"
            "}"
        )


_WRITTEN = {
    ("inclusive", False): "    result = found.first ? value : op(found.before, value);\n",
    ("exclusive", False): "    result = found.before;\n",
    ("inclusive", True): """\
    T upto = values[0];
    if (!found.first) upto = op(found.before, upto);
    results[0] = upto;
    for (int i = 1; i < Items; ++i) {
        upto = op(upto, values[i]);
        results[i] = upto;
    }
""",
    ("exclusive", True): """\
    for (int i = 0; i < Items; ++i) {
        T own = values[i];
        results[i] = found.before;
        found.before = found.first && i == 0 ? own : op(found.before, own);
    }
""",
}

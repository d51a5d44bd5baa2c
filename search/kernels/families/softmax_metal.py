"""The Metal text of a softmax kernel, written from its plan.

The kernel goes over a row in passes: find the maximum, sum the exponentials, store (or the first two in one, when
online). A row is cut into *units*, one element or one aligned load of four; the elements before the first aligned one
and after the last full four are its *edges*. What is kept on the chip is a leading part of the units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from search.kernels.families.softmax_plan import SIMD_WIDTH, SoftmaxPlan
from search.kernels.families.writer import MetalWriter

VECTOR_HEADER = """\
// Four neighbours in one load. MLX binds an input of fewer than eight elements in the constant address space.
template <typename T, typename P>
inline vec<T, 4> load4(P p) {
  if constexpr (is_same_v<P, const device T*>) {
    return *(const device vec<T, 4>*)p;
  } else {
    return vec<T, 4>(p[0], p[1], p[2], p[3]);
  }
}
"""


@dataclass(frozen=True)
class _Batch:
    """Elements that are at hand together: the loops that visit them, one of them, and where its result goes."""

    loops: tuple[str, ...]
    value: str
    column: str

    @property
    def single(self) -> bool:
        return not self.loops


_EDGE = _Batch((), "value", "base + c")
_OVER_QUAD = "for (uint j = 0; j < 4; ++j)"
_OVER_AHEAD = "for (uint u = 0; u < AHEAD; ++u)"

Use = Callable[[_Batch], None]


def write_body(plan: SoftmaxPlan) -> str:
    """Return the body of the kernel: reads ``x`` [rows, n], writes ``y`` [rows, n], element type ``T``."""
    writer = _Writer(plan)
    writer.declarations()
    writer.passes()
    return writer.metal.text


class _Writer:
    def __init__(self, plan: SoftmaxPlan) -> None:
        self.plan, self.metal = plan, MetalWriter()

    # -- what stands before the passes -------------------------------------------------------------------------------

    def declarations(self) -> None:
        plan, metal = self.plan, self.metal
        lanes = {
            "thread": "One thread computes a row.",
            "simdgroup": f"{plan.lanes} lanes share a row; a threadgroup has {plan.rows_per_threadgroup} of them.",
            "threadgroup": f"The {plan.threads} threads of a threadgroup share a row.",
        }
        metal.note(lanes[plan.mapping])
        metal(f"constexpr uint LANES = {plan.lanes_per_row};")
        if plan.exp2:
            metal("constexpr float LOG2E = 1.44269504f;  // exp(a - b) = exp2(a * LOG2E - b * LOG2E)")
        metal("constexpr float LOWEST = -1.0e38f;  // below any logit; finite, so that differences of it are numbers")
        if plan.unroll > 1:
            metal(f"constexpr uint AHEAD = {plan.unroll};  // loads that are under way together")
        self._row()
        if plan.vector > 1:
            metal("")
            metal.note("A row whose length isn't a multiple of 4 starts anywhere: go to the first aligned element.")
            metal(
                "const uint head = min(n, uint((4 - base % 4) % 4));",
                "const uint units = (n - head) / 4;",
                "const size_t first = base + head;",
            )
        if plan.keep != "device":
            self._kept_declaration()
        if plan.mapping == "threadgroup":
            self._reduction_memory()
        metal("", "float peak = LOWEST;", "float sum = 0.0f;")
        if plan.online and plan.exp2:
            metal("float shift = -peak * LOG2E;")

    def _row(self) -> None:
        plan, metal = self.plan, self.metal
        if plan.mapping == "thread":
            metal("const uint lane = 0;", "const uint row = thread_position_in_grid.x;")
        elif plan.mapping == "threadgroup":
            metal("const uint lane = thread_index_in_threadgroup;", "const uint row = threadgroup_position_in_grid.x;")
        elif plan.lanes == SIMD_WIDTH:
            metal("const uint lane = thread_index_in_simdgroup;", f"const uint row = {self._simdgroup_in_grid()};")
        else:
            metal(
                "const uint lane = thread_index_in_simdgroup % LANES;",
                f"constexpr uint ROWS = {SIMD_WIDTH // plan.lanes};  // rows of a simdgroup",
                f"const uint rows_before = ({self._simdgroup_in_grid()}) * ROWS;",
                "const uint row = rows_before + thread_index_in_simdgroup / LANES;",
            )
        if plan.rows_per_threadgroup > 1:
            metal("const uint n = row < uint(x_shape[0]) ? x_shape[1] : 0;  // a row past the end has no elements")
        else:
            metal("const uint n = x_shape[1];")
        metal("const size_t base = size_t(row) * n;")

    def _simdgroup_in_grid(self) -> str:
        if self.plan.simdgroups == 1:
            return "threadgroup_position_in_grid.x"
        return f"threadgroup_position_in_grid.x * {self.plan.simdgroups} + simdgroup_index_in_threadgroup"

    def _kept_declaration(self) -> None:
        plan, metal = self.plan, self.metal
        units = plan.kept_per_row // plan.vector
        metal("")
        if plan.keep == "registers":
            metal.note(f"The first {plan.kept_per_row} elements of a row stay in registers; the rest is read again.")
            metal(f"constexpr uint KEPT = {units // plan.lanes_per_row};  // {self._unit_name}s of a lane")
            metal(f"float kept[KEPT{' * 4' if plan.vector > 1 else ''}];")
        else:
            rows = plan.rows_per_threadgroup
            metal.note(
                f"The first {plan.kept_per_row} elements of a row stay in threadgroup memory; the rest is read again.",
                "A lane reads back only what it wrote, so no barrier is needed.",
            )
            metal(f"constexpr uint KEPT = {units};  // {self._unit_name}s of a row")
            metal(f"threadgroup float kept[{plan.kept_per_row * rows}];")
            slot = {1: "0"}.get(rows, f"(row % {rows}) * {plan.kept_per_row}")
            metal(f"const uint own = {slot};", f"const uint held = min({self._units}, KEPT);")

    def _reduction_memory(self) -> None:
        plan, metal = self.plan, self.metal
        metal("")
        if plan.reduction == "tree":
            metal(f"threadgroup float scratch[{plan.threads}];")
        else:
            metal(f"threadgroup float peaks[{plan.simdgroups}];", f"threadgroup float sums[{plan.simdgroups}];")

    # -- the passes --------------------------------------------------------------------------------------------------

    def passes(self) -> None:
        plan = self.plan
        if plan.online:
            self._paragraph("One pass: the running maximum, and the sum relative to it.")
            self._visit(self._update_running, kept=self._read_in)
            self._merge_running()
        else:
            self._paragraph("First pass: the maximum.")
            self._visit(self._update_peak, kept=self._read_in)
            self._reduce("peak", "max", "LOWEST")
            self._paragraph("Second pass: the sum of the exponentials.")
            if plan.exp2:
                self.metal("const float shift = -peak * LOG2E;")
            self._visit(self._update_sum, kept=self._exponentiate_kept)
            self._reduce("sum", "sum", "0.0f")
        self._paragraph("Last pass: store.")
        if plan.reciprocal:
            self.metal("const float inverse = 1.0f / sum;")
        self._visit(self._store, kept=self._store_kept)

    def _update_peak(self, batch: _Batch) -> None:
        self._each(batch, f"peak = max(peak, {batch.value});")

    def _update_sum(self, batch: _Batch) -> None:
        self._each(batch, f"sum += {self._exponential(batch.value)};")

    def _update_running(self, batch: _Batch) -> None:
        """One rescaling of the sum for the whole batch."""
        metal = self.metal
        if batch.single:
            metal(f"const float grown = max(peak, {batch.value});")
        else:
            metal("float grown = peak;")
            self._each(batch, f"grown = max(grown, {batch.value});")
        if self.plan.exp2:
            metal("const float grown_shift = -grown * LOG2E;")
            metal(f"sum *= {self._exp}(grown_shift - shift);")
            metal("peak = grown;", "shift = grown_shift;")
        else:
            metal(f"sum *= {self._exp}(peak - grown);")
            metal("peak = grown;")
        self._each(batch, f"sum += {self._exponential(batch.value)};")

    def _merge_running(self) -> None:
        """Bring the lanes' running sums to the row's maximum and add them."""
        plan, metal = self.plan, self.metal
        if plan.mapping == "thread":
            return
        metal("", f"const float own_{'shift = shift' if plan.exp2 else 'peak = peak'};")
        self._reduce("peak", "max", "LOWEST")
        if plan.exp2:
            metal("shift = -peak * LOG2E;", f"sum *= {self._exp}(shift - own_shift);")
        else:
            metal(f"sum *= {self._exp}(own_peak - peak);")
        self._reduce("sum", "sum", "0.0f")

    def _store(self, batch: _Batch) -> None:
        result = f"T({self._scaled(self._exponential(batch.value))})"
        self._store_batch(batch, result)

    # -- what is kept on the chip -------------------------------------------------------------------------------------

    def _read_in(self, kept: str) -> None:
        """Read one unit from the device, keep it, and use it."""
        batch = self._read_unit("c")
        self._each(batch, f"{kept} = {batch.value};")
        (self._update_running if self.plan.online else self._update_peak)(batch)

    def _exponentiate_kept(self, kept: str) -> None:
        self._each(self._unit, f"{kept} = {self._exponential(kept)};", f"sum += {kept};")

    def _store_kept(self, kept: str) -> None:
        numerator = self._exponential(kept) if self.plan.online else kept
        self._store_batch(self._unit, f"T({self._scaled(numerator)})")

    # -- going over a row ---------------------------------------------------------------------------------------------

    def _visit(self, use: Use, kept: Callable[[str], None]) -> None:
        """Write one pass over the row: the kept units, the other units, and the edges."""
        plan, metal = self.plan, self.metal
        begin = "lane"
        if plan.keep == "registers":
            metal("#pragma unroll")
            with metal.block("for (uint i = 0; i < KEPT; ++i)"):
                metal("const uint c = lane + i * LANES;")
                with metal.block(f"if (c < {self._units})"):
                    kept("kept[i * 4 + j]" if plan.vector > 1 else "kept[i]")
            begin = "lane + KEPT * LANES"
        elif plan.keep == "threadgroup":
            with metal.block("for (uint c = lane; c < held; c += LANES)"):
                kept("kept[own + c * 4 + j]" if plan.vector > 1 else "kept[own + c]")
            begin = "lane + KEPT"
        self._visit_units(use, begin)
        if plan.vector > 1:
            with metal.block("for (uint e = lane; e < n - units * 4; e += LANES)"):
                metal("const uint c = e < head ? e : e + units * 4;  // before the first full four, or after the last")
                metal("const float value = float(x[base + c]);")
                use(_EDGE)

    def _visit_units(self, use: Use, begin: str) -> None:
        metal = self.metal
        if self.plan.unroll == 1:
            with metal.block(f"for (uint c = {begin}; c < {self._units}; c += LANES)"):
                use(self._read_unit("c"))
            return
        with metal.block(""):
            metal(f"uint c = {begin};")
            with metal.block(f"for (; c + (AHEAD - 1) * LANES < {self._units}; c += AHEAD * LANES)"):
                use(self._read_ahead())
            with metal.block(f"for (; c < {self._units}; c += LANES)"):
                use(self._read_unit("c"))

    def _read_unit(self, c: str) -> _Batch:
        if self.plan.vector > 1:
            self.metal(f"const vec<T, 4> quad = load4<T>(x + first + {c} * 4);")
        else:
            self.metal(f"const float value = float(x[base + {c}]);")
        return self._unit

    def _read_ahead(self) -> _Batch:
        if self.plan.vector > 1:
            self.metal("vec<T, 4> ahead[AHEAD];")
            self.metal(f"{_OVER_AHEAD} ahead[u] = load4<T>(x + first + (c + u * LANES) * 4);")
            return _Batch((_OVER_AHEAD, _OVER_QUAD), "float(ahead[u][j])", "first + (c + u * LANES) * 4")
        self.metal("float ahead[AHEAD];")
        self.metal(f"{_OVER_AHEAD} ahead[u] = float(x[base + c + u * LANES]);")
        return _Batch((_OVER_AHEAD,), "ahead[u]", "base + c + u * LANES")

    @property
    def _unit(self) -> _Batch:
        if self.plan.vector > 1:
            return _Batch((_OVER_QUAD,), "float(quad[j])", "first + c * 4")
        return _Batch((), "value", "base + c")

    @property
    def _units(self) -> str:
        return "units" if self.plan.vector > 1 else "n"

    @property
    def _unit_name(self) -> str:
        return "quad" if self.plan.vector > 1 else "element"

    def _each(self, batch: _Batch, *statements: str) -> None:
        with self._over(batch.loops):
            self.metal(*statements)

    @contextmanager
    def _over(self, loops: tuple[str, ...]) -> Iterator[None]:
        with ExitStack() as nest:
            for loop in loops:
                nest.enter_context(self.metal.block(loop))
            yield

    def _store_batch(self, batch: _Batch, result: str) -> None:
        """Store ``result`` of every element, four at once where they were read so."""
        metal = self.metal
        if _OVER_QUAD not in batch.loops:
            self._each(batch, f"y[{batch.column}] = {result};")
            return
        with self._over(batch.loops[:-1]):
            metal("vec<T, 4> out;")
            with metal.block(_OVER_QUAD):
                metal(f"out[j] = {result};")
            metal(f"*(device vec<T, 4>*)(y + {batch.column}) = out;")

    # -- arithmetic ---------------------------------------------------------------------------------------------------

    @property
    def _exp(self) -> str:
        return ("fast::" if self.plan.fast else "") + ("exp2" if self.plan.exp2 else "exp")

    def _exponential(self, value: str) -> str:
        if self.plan.exp2:
            return f"{self._exp}(fma({value}, LOG2E, shift))"
        return f"{self._exp}({value} - peak)"

    def _scaled(self, numerator: str) -> str:
        return f"{numerator} * inverse" if self.plan.reciprocal else f"{numerator} / sum"

    def _paragraph(self, note: str) -> None:
        self.metal("")
        self.metal.note(note)

    # -- reductions ----------------------------------------------------------------------------------------------------

    def _reduce(self, name: str, operation: str, neutral: str) -> None:
        """Leave in ``name``, in every lane of the row, the maximum or sum over those lanes."""
        plan = self.plan
        if plan.mapping == "thread":
            return
        if plan.reduction == "tree":
            self._reduce_by_tree(name, operation)
            return
        self._reduce_simdgroup(name, operation)
        if plan.mapping == "threadgroup":
            slots, place = f"{name}s", "thread_index_in_simdgroup"
            self.metal(
                f"if ({place} == 0) {slots}[simdgroup_index_in_threadgroup] = {name};",
                "threadgroup_barrier(mem_flags::mem_threadgroup);",
                f"{name} = {place} < {plan.simdgroups} ? {slots}[{place}] : {neutral};",
            )
            self._reduce_simdgroup(name, operation)

    def _reduce_simdgroup(self, name: str, operation: str) -> None:
        if self.plan.reduction == "simd":
            self.metal(f"{name} = simd_{operation}({name});")
            return
        width = min(self.plan.lanes_per_row, SIMD_WIDTH)
        with self.metal.block(f"for (ushort mask = {width // 2}; mask > 0; mask /= 2)"):
            self.metal(f"{name} = {_combine(operation, name, f'simd_shuffle_xor({name}, mask)')};")

    def _reduce_by_tree(self, name: str, operation: str) -> None:
        metal = self.metal
        barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);"
        metal(f"scratch[lane] = {name};", barrier)
        with metal.block("for (uint stride = LANES / 2; stride > 0; stride /= 2)"):
            combined = _combine(operation, "scratch[lane]", "scratch[lane + stride]")
            metal(f"if (lane < stride) scratch[lane] = {combined};", barrier)
        metal(f"{name} = scratch[0];", barrier)


def _combine(operation: str, a: str, b: str) -> str:
    return f"max({a}, {b})" if operation == "max" else f"{a} + {b}"

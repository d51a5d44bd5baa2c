"""The Metal text of a prefill attention kernel, written from its plan.

There are four layouts. A thread has a whole query row; or the lanes of a simdgroup share the head dimension, with
one reduction a score; or each lane scores a key of its own from a transposed tile, with one reduction a tile; or a
simdgroup multiplies matrices (`attention_matrix`). The scale (and log2 e, when exponentials are exp2) goes into the
query once, so that scores come out ready.
"""

from __future__ import annotations

from search.kernels.families.attention_matrix import write_matrix_products
from search.kernels.families.attention_plan import SIMD_WIDTH, AttentionPlan
from search.kernels.families.attention_softmax import exponential, fold_scale, when_grown
from search.kernels.families.attention_tiles import declare_tiles, filled, over_tiles
from search.kernels.families.writer import MetalWriter

_EACH_ROW = "for (uint r = 0; r < ROWS; ++r)"
_EACH_STEP = "for (uint u = 0; u < STEP; ++u)"
_EACH_PART = "for (uint i = 0; i < PER; ++i)"


def write_body(plan: AttentionPlan) -> str:
    """Return the body of the kernel: ``q``, ``k``, ``v`` [B, H, L, D] and ``scale`` in, ``o`` out, element type ``T``.

    Template values ``D``, ``CAUSAL`` and ``T``; the grid is (queries, B * H).
    """
    metal = MetalWriter()
    if plan.mapping == "thread":
        _thread_per_row(plan, metal)
    elif plan.mapping == "matrix":
        write_matrix_products(plan, metal)
    else:
        _SimdgroupWriter(plan, metal).write()
    return metal.text


# -- a thread has a whole row -----------------------------------------------------------------------------------------


def _thread_per_row(plan: AttentionPlan, metal: MetalWriter) -> None:
    metal.note("One thread computes a query row; neighbours read the same key at the same time.")
    metal(
        "const uint L = q_shape[2];",
        "const uint row = thread_position_in_grid.x;",
        "if (row >= L) return;",
        "const size_t base = size_t(thread_position_in_grid.y) * L * D;",
        "const uint seen = CAUSAL ? row + 1 : L;  // keys that this query sees",
    )
    fold_scale(plan, metal)
    metal("", "float acc[D];", "for (uint d = 0; d < D; ++d) acc[d] = 0.0f;")
    metal("float peak = -INFINITY;", "float sum = 0.0f;", "")
    if plan.online:
        metal.note("One pass over the keys: what was summed so far is rescaled to the maximum so far.")
        with metal.block("for (uint key = 0; key < seen; ++key)"):
            _thread_score(metal)
            metal("const float grown = max(peak, score);")
            with when_grown(plan, metal, "peak"):
                metal(f"const float shrink = {exponential(plan)}(peak - grown);", "sum *= shrink;")
                metal("for (uint d = 0; d < D; ++d) acc[d] *= shrink;", "peak = grown;")
            _thread_weigh(plan, metal)
    else:
        metal.note("First pass over the keys: the largest score.")
        with metal.block("for (uint key = 0; key < seen; ++key)"):
            _thread_score(metal)
            metal("peak = max(peak, score);")
        metal("")
        metal.note("Second pass: the scores again, their exponentials, and the weighted values.")
        with metal.block("for (uint key = 0; key < seen; ++key)"):
            _thread_score(metal)
            _thread_weigh(plan, metal)
    metal("", "for (uint d = 0; d < D; ++d) o[base + row * D + d] = T(acc[d] / sum);")


def _thread_score(metal: MetalWriter) -> None:
    metal("float score = 0.0f;")
    metal("for (uint d = 0; d < D; ++d) score += float(q[base + row * D + d]) * float(k[base + key * D + d]);")
    metal("score *= fold;")


def _thread_weigh(plan: AttentionPlan, metal: MetalWriter) -> None:
    metal(f"const float weight = {exponential(plan)}(score - peak);", "sum += weight;")
    metal("for (uint d = 0; d < D; ++d) acc[d] += weight * float(v[base + key * D + d]);")


# -- a simdgroup has one or more rows ---------------------------------------------------------------------------------


class _SimdgroupWriter:
    def __init__(self, plan: AttentionPlan, metal: MetalWriter) -> None:
        self.plan, self.metal = plan, metal

    def write(self) -> None:
        """Write the whole body."""
        self._constants()
        if self.plan.tile:
            declare_tiles(self.plan, self.metal)
        self._place()
        self._read_queries()
        if self.plan.online:
            self._paragraph("One pass over the keys: what was summed so far is rescaled to the maximum so far.")
            self._pass_over_keys(with_values=True)
        else:
            self._paragraph("First pass over the keys: the largest score of each row.")
            self._pass_over_keys(with_values=False)
            if self.plan.transposed:
                with self.metal.block(_EACH_ROW):
                    self._reduce("peak[r]", "max")
            self._paragraph("Second pass: the scores again, their exponentials, and the weighted values.")
            self._pass_over_keys(with_values=True)
        self._store()

    # -- declarations ---------------------------------------------------------------------------------------------

    def _constants(self) -> None:
        plan, metal = self.plan, self.metal
        metal.note(
            f"A simdgroup computes {'ROWS query rows' if plan.rows > 1 else 'a query row'}; "
            "each lane owns PER elements of the head dimension."
        )
        metal("constexpr uint PER = D / 32;")
        metal(f"constexpr uint ROWS = {plan.rows};", f"constexpr uint SIMDGROUPS = {plan.simdgroups};")
        if plan.tile:
            metal(f"constexpr uint TILE = {plan.tile};  // keys that the threadgroup shares at a time")
        if plan.transposed and plan.lanes_per_key > 1:
            metal("constexpr uint SPLIT = 32 / TILE;  // lanes that score a key together")
        if not plan.transposed:
            metal(f"constexpr uint STEP = {plan.unroll};  // keys of one step")

    def _place(self) -> None:
        plan, metal = self.plan, self.metal
        metal(
            "",
            "const uint L = q_shape[2];",
            "const uint lane = thread_index_in_simdgroup;",
            "const uint group_row = threadgroup_position_in_grid.x * SIMDGROUPS * ROWS;",
            "const uint first_row = group_row + simdgroup_index_in_threadgroup * ROWS;",
            "const size_t base = size_t(threadgroup_position_in_grid.y) * L * D;",
        )
        if plan.tile:
            metal(
                "const uint end = CAUSAL ? min(L, group_row + SIMDGROUPS * ROWS) : L;  // keys that any row here sees"
            )
        else:
            metal("const uint end = CAUSAL ? min(L, first_row + ROWS) : L;  // keys that any row here sees")
        fold_scale(plan, metal)
        if plan.transposed and plan.lanes_per_key > 1:
            metal("const uint own_key = lane % TILE;")
            metal("const uint part = lane / TILE;  // of the head dimension: every SPLIT-th element, from this one")

    def _read_queries(self) -> None:
        plan, metal = self.plan, self.metal
        metal("")
        metal("float query[ROWS][PER];", "float acc[ROWS][PER];", "float peak[ROWS];", "float sum[ROWS];")
        metal("uint seen[ROWS];  // keys that each row sees; a row past the end repeats the last")
        with metal.block(_EACH_ROW):
            metal("const uint row = min(first_row + r, L - 1);", "seen[r] = CAUSAL ? row + 1 : L;")
            metal("peak[r] = -INFINITY;", "sum[r] = 0.0f;")
            if plan.transposed:
                value = f"float(q[base + row * D + {self._scored('own_key' if plan.lanes_per_key > 1 else 'lane')}])"
            else:
                value = self._read_part("q", "base + row * D")
            with metal.block(_EACH_PART):
                metal(f"query[r][i] = fold * {value};", "acc[r][i] = 0.0f;")

    def _own(self, part: str) -> str:
        """The index in the head dimension of a lane's ``part``: neighbouring when one load brings them all."""
        return f"lane * PER + {part}" if self.plan.vector else f"lane + 32 * {part}"

    def _read_part(self, array: str, row: str, space: str = "device") -> str:
        """Read a lane's elements of a row in one load if loads are wide; return the expression of the i-th as float."""
        if not self.plan.vector:
            return f"float({array}[{row} + {self._own('i')}])"
        self.metal(f"const vec<T, PER> wide = *(const {space} vec<T, PER>*)({array} + {row} + lane * PER);")
        return "float(wide[i])"

    # -- a pass over the keys -----------------------------------------------------------------------------------------

    def _pass_over_keys(self, *, with_values: bool) -> None:
        plan, metal = self.plan, self.metal
        if plan.tile:
            over_tiles(plan, metal, "kv" if with_values else "k", lambda: self._use_tile(with_values=with_values))
        else:
            self._keys("0", "end", with_values=with_values)

    def _use_tile(self, *, with_values: bool) -> None:
        if self.plan.transposed:
            self._own_key(with_values=with_values)
        else:
            self.metal("const uint stop = min(start + TILE, end);")
            self._keys("start", "stop", with_values=with_values)

    # -- lanes share the head dimension -------------------------------------------------------------------------------

    def _keys(self, begin: str, stop: str, *, with_values: bool) -> None:
        """Score the keys from ``begin`` to ``stop``, STEP at a time, and use the scores."""
        metal = self.metal
        with metal.block(f"for (uint key = {begin}; key < {stop}; key += STEP)"):
            metal("float score[ROWS][STEP];")
            with metal.block(_EACH_STEP):
                value = self._read_key_part("k", stop)
                metal("float key_part[PER];", f"{_EACH_PART} key_part[i] = {value};")
                with metal.block(_EACH_ROW):
                    metal("float part_sum = 0.0f;", f"{_EACH_PART} part_sum += query[r][i] * key_part[i];")
                    self._reduce("part_sum", "sum")
                    metal("score[r][u] = key + u < seen[r] ? part_sum : -INFINITY;")
            if not with_values:
                metal(f"{_EACH_ROW} {_EACH_STEP} peak[r] = max(peak[r], score[r][u]);")
                return
            with metal.block(_EACH_ROW):
                if self.plan.online:
                    metal("float grown = peak[r];", f"{_EACH_STEP} grown = max(grown, score[r][u]);")
                    self._rescale()
                with metal.block(_EACH_STEP):
                    metal(f"score[r][u] = {exponential(self.plan)}(score[r][u] - peak[r]);", "sum[r] += score[r][u];")
            with metal.block(_EACH_STEP):
                value = self._read_key_part("v", stop)
                with metal.block(_EACH_PART):
                    metal(f"const float value = {value};")
                    metal(f"{_EACH_ROW} acc[r][i] += score[r][u] * value;")

    def _read_key_part(self, array: str, stop: str) -> str:
        """Read a lane's elements of key (or value) ``key + u``, from its tile if there is one."""
        at = "key + u"
        if self.plan.unroll > 1:
            self.metal(f"const uint at = min(key + u, {stop} - 1);  // past the end: read the last, which is masked")
            at = "at"
        if not self.plan.tile:
            return self._read_part(array, f"base + ({at}) * D" if " " in at else f"base + {at} * D")
        return self._read_part(filled(self.plan, array), f"({at} - start) * D", "threadgroup")

    def _rescale(self) -> None:
        """Bring what was summed so far to the new maximum ``grown``."""
        metal = self.metal
        with when_grown(self.plan, metal, "peak[r]"):
            metal(f"const float shrink = {exponential(self.plan)}(peak[r] - grown);", "sum[r] *= shrink;")
            metal(f"{_EACH_PART} acc[r][i] *= shrink;", "peak[r] = grown;")

    # -- each lane scores a key ---------------------------------------------------------------------------------------

    def _own_key(self, *, with_values: bool) -> None:
        """Score the tile's keys, one for each lane, and use the scores."""
        plan, metal = self.plan, self.metal
        split = plan.lanes_per_key > 1
        own_key, source = ("own_key", "part * TILE + j") if split else ("lane", "j")
        metal("float score[ROWS];", f"{_EACH_ROW} score[r] = 0.0f;")
        with metal.block("for (uint j = 0; j < TILE; ++j)"), metal.block(_EACH_PART):
            metal(f"const float key = float({filled(self.plan, 'k')}[({self._scored('j')}) * (TILE + 1) + {own_key}]);")
            metal(f"{_EACH_ROW} score[r] += simd_shuffle(query[r][i], ushort({source})) * key;")
        with metal.block(_EACH_ROW):
            if split:
                metal.note("The lanes of a key add their parts.")
                metal("for (ushort mask = TILE; mask < 32; mask *= 2) score[r] += simd_shuffle_xor(score[r], mask);")
            metal(f"if (start + {own_key} >= seen[r]) score[r] = -INFINITY;")
            if not with_values:
                metal("peak[r] = max(peak[r], score[r]);")
                return
            if plan.online:
                metal("float grown = score[r];")
                self._reduce("grown", "max")
                metal("grown = max(grown, peak[r]);")
                self._rescale()
            metal(f"score[r] = {exponential(plan)}(score[r] - peak[r]);", "sum[r] += score[r];  // of this lane's keys")
        with metal.block("for (uint j = 0; j < TILE; ++j)"):
            value = self._read_part(filled(plan, "v"), "j * D", "threadgroup")
            metal("float value[PER];", f"{_EACH_PART} value[i] = {value};")
            with metal.block(_EACH_ROW):
                metal("const float weight = simd_shuffle(score[r], ushort(j));")
                metal(f"{_EACH_PART} acc[r][i] += weight * value[i];")

    def _scored(self, holder: str) -> str:
        """The i-th head dimension of which the query is in the ``holder``-th lane of those that score a key's part."""
        return f"({holder} * PER + i) * SPLIT + part" if self.plan.lanes_per_key > 1 else f"{holder} * PER + i"

    # -- the end ------------------------------------------------------------------------------------------------------

    def _store(self) -> None:
        plan, metal = self.plan, self.metal
        metal("")
        with metal.block(_EACH_ROW):
            if plan.transposed:
                self._reduce("sum[r]", "sum")
                if plan.lanes_per_key > 1:
                    metal("sum[r] /= SPLIT;  // the lanes of a key counted it each")
            metal("const float inverse = 1.0f / sum[r];")
            with metal.block("if (first_row + r < L)"):
                to = "base + (first_row + r) * D"
                if plan.vector:
                    metal("vec<T, PER> wide;", f"{_EACH_PART} wide[i] = T(acc[r][i] * inverse);")
                    metal(f"*(device vec<T, PER>*)(o + {to} + lane * PER) = wide;")
                else:
                    metal(f"{_EACH_PART} o[{to} + {self._own('i')}] = T(acc[r][i] * inverse);")

    def _reduce(self, name: str, operation: str) -> None:
        """Leave in ``name``, in every lane, the sum or maximum over the simdgroup."""
        if self.plan.reduction == "simd":
            self.metal(f"{name} = simd_{operation}({name});")
            return
        other = f"simd_shuffle_xor({name}, mask)"
        combined = f"max({name}, {other})" if operation == "max" else f"{name} + {other}"
        self.metal(f"for (ushort mask = {SIMD_WIDTH // 2}; mask > 0; mask /= 2) {name} = {combined};")

    def _paragraph(self, note: str) -> None:
        self.metal("")
        self.metal.note(note)

"""What sentences of a person mean, sentence by sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search.proposers.catalogue_language import LONGEST, read_guidance
from search.proposers.catalogue_plans import phrases_of

ATTENTION = phrases_of("attention")

# Sentence; what it wants, in order; what it rules out.
SENTENCES = [
    ("try double buffering first, no unrolling", ["double_buffer"], ["unroll"]),
    ("double buffering", ["double_buffer"], []),
    ("Double-buffer the tiles!", ["double_buffer"], []),
    ("try doubel bufering", ["double_buffer"], []),
    ("vectorise the loads", ["vector_loads"], []),
    ("use float4", ["vector_loads"], []),
    ("no unrolling", [], ["unroll"]),
    ("don't unroll", [], ["unroll"]),
    ("do not unroll", [], ["unroll"]),
    ("don’t even try to unroll", [], ["unroll"]),
    ("without tiles, unrolling and exp2", [], ["kv_tiles", "unroll", "exp2"]),
    ("no unrolling or vector loads, use tiles", ["kv_tiles"], ["unroll", "vector_loads"]),
    ("avoid unrolling, vector loads and double buffering", [], ["unroll", "vector_loads", "double_buffer"]),
    ("avoid unrolling, vector loads, double buffering", [], ["unroll", "vector_loads", "double_buffer"]),
    ("skip unrolling, try exp2", ["exp2"], ["unroll"]),
    ("no unrolling, double buffering", ["double_buffer"], ["unroll"]),
    ("no unrolling and double buffering first", ["double_buffer"], ["unroll"]),
    ("neither unrolling nor exp2", [], ["unroll", "exp2"]),
    ("don't use exp2; try transposing K, then unroll", ["transposed_k", "unroll"], ["exp2"]),
    ("online softmax, then K/V tiles, then a transposed K tile", ["online", "kv_tiles", "transposed_k"], []),
    ("tiles of K and V in shared memory", ["kv_tiles"], []),
    ("unroll after tiling", ["kv_tiles", "unroll"], []),
    ("after tiling, unroll", ["kv_tiles", "unroll"], []),
    ("before unrolling, do tiles", ["kv_tiles", "unroll"], []),
    ("tiles before unrolling", ["kv_tiles", "unroll"], []),
    ("unroll last, exp2, tiles", ["exp2", "kv_tiles", "unroll"], []),
    ("tiles, and exp2 first", ["exp2", "kv_tiles"], []),
    ("instead of unrolling use wide loads", ["vector_loads"], ["unroll"]),
    ("wide loads rather than unrolling", ["vector_loads"], ["unroll"]),
    ("anything but unrolling", [], ["unroll"]),
    ("everything except unrolling", [], ["unroll"]),
    ("not unrolling but tiles", ["kv_tiles"], ["unroll"]),
    ("not only tiles", ["kv_tiles"], []),
    ("leave unrolling out", [], ["unroll"]),
    ("unrolling is not wanted, tiles are", ["kv_tiles"], ["unroll"]),
    ("I can't see unrolling helping; vectorize instead", ["vector_loads"], ["unroll"]),
    ("unroll. No, don't unroll.", [], ["unroll"]),
    ("no unrolling. Actually, unroll.", ["unroll"], []),
    ("rescale only when the max grows", ["lazy_rescale"], []),
    ("four query rows per simdgroup", ["more_rows"], []),
    ("more rows per simdgroup please", ["more_rows"], []),
    ("one row per simdgroup", ["row_per_simdgroup"], []),
    ("fix the bank conflicts with padding", ["transposed_k"], []),
    ("butterfly reductions", ["shuffle_reductions"], []),
    ("simd_sum instead of shuffles", ["simd_reductions"], ["shuffle_reductions"]),
    ("make it faster", [], []),
    ("", [], []),
]


@pytest.mark.parametrize(("sentence", "wanted", "avoid"), SENTENCES, ids=[s or "nothing" for s, _, _ in SENTENCES])
def test_a_sentence_means(sentence: str, wanted: list[str], avoid: list[str]) -> None:
    reading = read_guidance(sentence, ATTENTION)
    assert (list(reading.wanted), list(reading.avoid)) == (wanted, avoid)
    assert not reading.unsure


def test_words_that_fit_two_entries_stay_open_with_their_place_in_the_sentence() -> None:
    reading = read_guidance("no exp2, better {reductions}", ATTENTION)
    assert reading.wanted == ()
    assert reading.avoid == ("exp2",)
    (unsure,) = reading.unsure
    assert unsure.words == "reductions"
    assert unsure.keys == ("shuffle_reductions", "simd_reductions")
    assert unsure.sentence.format("tiles") == "no exp2, better {tiles}"


def test_ruling_out_words_that_fit_two_entries_rules_out_both() -> None:
    reading = read_guidance("no reductions", ATTENTION)
    assert reading.avoid == ("shuffle_reductions", "simd_reductions")
    assert not reading.unsure


@pytest.mark.parametrize("family", ["attention", "softmax"])
def test_every_name_of_an_entry_means_it_unless_it_is_shared_on_purpose(family: str) -> None:
    phrases = phrases_of(family)
    for key, names in phrases.items():
        for name in names:
            if name != "reduction":
                reading = read_guidance(name, phrases)
                assert (reading.wanted, reading.unsure) == ((key,), ()), name


@given(st.text(max_size=300))
def test_no_text_breaks_the_reader(text: str) -> None:
    reading = read_guidance(text, ATTENTION)
    assert set(reading.wanted) | set(reading.avoid) <= set(ATTENTION)
    assert not set(reading.wanted) & set(reading.avoid)


@given(st.lists(st.sampled_from(sorted(ATTENTION)), unique=True, max_size=5))
def test_plain_lists_keep_their_order(keys: list[str]) -> None:
    assert read_guidance(", ".join(ATTENTION[key][0] for key in keys), ATTENTION).wanted == tuple(keys)


def test_a_very_long_sentence_is_read_up_to_its_limit() -> None:
    assert read_guidance("x " * LONGEST + "unroll", ATTENTION).wanted == ()

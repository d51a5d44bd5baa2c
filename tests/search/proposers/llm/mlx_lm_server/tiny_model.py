"""A language model small enough to be made by a test: two layers, its own tokenizer, weights from a fixed seed.

With random weights it babbles. It can also be made to recite: its layers then add nothing, and its output layer leads
from each token of a text to the next one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import mlx.core as mx
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

HIDDEN, HEADS, LAYERS, SEED = 128, 4, 2, 7
WORDS = 1500
END, END_TOKEN = "<|end|>", 0
ALWAYS = ""
"""Words that stand in every message."""

PIECE = 6
"""Characters in one token of a text that is recited, at least: no token may lead to two others."""


def write_model(folder: Path, corpus: Iterable[str], recited: Mapping[str, str] | None = None) -> Path:
    """Write a model into ``folder``, with a tokenizer trained on ``corpus``; returns the folder.

    ``recited`` are the texts that it answers with, each under words of the last message that call for it; the first
    that fits counts. Without any it babbles.
    """
    recited = recited or {}
    tokenizer = _trained(corpus)
    tokens: dict[str, int] = tokenizer["model"]["vocab"]
    chains = [_chain(tokenizer, number, text) for number, text in enumerate(recited.values())]
    folder.mkdir(parents=True)
    _write(folder / "tokenizer.json", tokenizer)
    _write(
        folder / "tokenizer_config.json",
        {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "chat_template": _template(recited)},
    )
    _write(
        folder / "config.json",
        {
            "model_type": "llama",
            "hidden_size": HIDDEN,
            "num_hidden_layers": LAYERS,
            "intermediate_size": 2 * HIDDEN,
            "num_attention_heads": HEADS,
            "rms_norm_eps": 1e-5,
            "vocab_size": len(tokens),
            "max_position_embeddings": 65536,
            "tie_word_embeddings": False,
            "eos_token_id": [END_TOKEN, *(chain[-1] for chain in chains)],
        },
    )
    mx.save_safetensors(str(folder / "model.safetensors"), _weights(len(tokens), chains), {"format": "mlx"})
    return folder


def _write(path: Path, table: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(table), encoding="utf-8")


def _trained(corpus: Iterable[str]) -> dict[str, Any]:
    """Return a tokenizer of bytes and the ``WORDS`` commonest pieces of ``corpus``, as its table in JSON."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=WORDS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[END],
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus, trainer)
    table: dict[str, Any] = json.loads(tokenizer.to_str())
    for role in ("system", "user", "assistant"):
        _special(table, f"<|{role}|>")
    return table


def _special(tokenizer: dict[str, Any], word: str) -> int:
    """Add a token that no text is made of; returns it."""
    tokens = tokenizer["model"]["vocab"]
    tokens[word] = len(tokens)
    tokenizer["added_tokens"].append({**tokenizer["added_tokens"][0], "id": tokens[word], "content": word})
    return int(tokens[word])


def _chain(tokenizer: dict[str, Any], number: int, text: str) -> list[int]:
    """Add the tokens that recite ``text`` and nothing else; returns them, from its start to its end."""
    tokens = tokenizer["model"]["vocab"]
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    ids, piece = [_special(tokenizer, _start(number))], ""
    for at, letter in enumerate(text):
        piece += letter
        word = letters.pre_tokenize_str(piece)[0][0]
        if at + 1 == len(text) or (len(piece) >= PIECE and len(text) - at > PIECE and word not in tokens):
            assert word not in tokens
            tokens[word] = len(tokens)
            ids.append(tokens[word])
            piece = ""
    return [*ids, _special(tokenizer, f"<|end {number}|>")]


def _start(number: int) -> str:
    return f"<|recite {number}|>"


def _template(recited: Mapping[str, str]) -> str:
    start = "<|assistant|>"
    for number, words in reversed(list(enumerate(recited))):
        start = (
            f"{{% if {json.dumps(words)} in messages[-1]['content'] %}}{_start(number)}{{% else %}}{start}{{% endif %}}"
        )
    return (
        "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}" + END + "{% endfor %}"
        "{% if add_generation_prompt %}" + start + "{% endif %}"
    )


def _weights(size: int, chains: Iterable[list[int]]) -> dict[str, mx.array]:
    """Return the weights: random, or such that each token of ``chains`` is followed by the next one."""
    keys = iter(mx.random.split(mx.random.key(SEED), 100))

    def drawn(rows: int, columns: int, scale: float = 1.0) -> mx.array:
        return scale * mx.random.normal((rows, columns), key=next(keys)) / columns**0.5

    chains = list(chains)
    inner = 0.0 if chains else 1.0
    embedding, head = drawn(size, HIDDEN, HIDDEN**0.5), drawn(size, HIDDEN)
    weights = {"model.embed_tokens.weight": embedding, "model.norm.weight": mx.ones(HIDDEN)}
    for layer in range(LAYERS):
        name = f"model.layers.{layer}"
        for each in ("q", "k", "v", "o"):
            scale = inner if each == "o" else 1.0
            weights[f"{name}.self_attn.{each}_proj.weight"] = drawn(HIDDEN, HIDDEN, scale)
        weights[f"{name}.mlp.gate_proj.weight"] = drawn(2 * HIDDEN, HIDDEN)
        weights[f"{name}.mlp.up_proj.weight"] = drawn(2 * HIDDEN, HIDDEN)
        weights[f"{name}.mlp.down_proj.weight"] = drawn(HIDDEN, 2 * HIDDEN, inner)
        for each in ("input", "post_attention"):
            weights[f"{name}.{each}_layernorm.weight"] = mx.ones(HIDDEN)
    for chain in chains:
        for before, after in pairwise(chain):
            head[after] = embedding[before]
    weights["lm_head.weight"] = head
    return weights

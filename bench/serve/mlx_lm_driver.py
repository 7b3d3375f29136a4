"""Drives mlx-lm's own model classes on MLX's CPU device with the weights of the same GGUF file.

MLX reads Q4_0, Q4_1 and Q8_0 matrices as its own affine 4- and 8-bit format, so the bits are the same.
The rotary layout of GGUF files is MLX's "traditional" one. One eval a step, no sampling.
"""

import functools

import cases
import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models import llama
from mlx_lm.models.cache import make_prompt_cache

NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
GROUP = 32
PREFILL_STEP = 512  # mlx-lm's own default is 2048: slower here
STEPS = 4  # timed decode steps: some take seconds


def module_name(gguf_name):
    parts = gguf_name.split(".")
    if parts[0] == "blk":
        return f"model.layers.{parts[1]}.{NAMES[parts[2]]}"
    return NAMES[parts[0]]


def load(path):
    tensors, facts = mx.load(path, return_metadata=True)

    def fact(name):
        return facts[f"llama.{name}"].item()

    hidden, heads = fact("embedding_length"), fact("attention.head_count")
    model = llama.Model(
        llama.ModelArgs(
            model_type="llama",
            hidden_size=hidden,
            num_hidden_layers=fact("block_count"),
            intermediate_size=fact("feed_forward_length"),
            num_attention_heads=heads,
            num_key_value_heads=fact("attention.head_count_kv"),
            rms_norm_eps=fact("attention.layer_norm_rms_epsilon"),
            vocab_size=fact("vocab_size"),
            rope_theta=fact("rope.freq_base"),
            rope_traditional=True,
            tie_word_embeddings="output.weight" not in tensors,
        )
    )
    weights = {f"{module_name(k)}.{k.rsplit('.', 1)[1]}": v for k, v in tensors.items()}

    def quantization(name, _):
        if f"{name}.scales" not in weights:
            return False
        packed, scales = weights[f"{name}.weight"], weights[f"{name}.scales"]
        return {"group_size": GROUP, "bits": packed.shape[1] * 32 // (scales.shape[1] * GROUP)}

    nn.quantize(model, class_predicate=quantization)
    half = {k: v.astype(mx.float16) if v.dtype == mx.float32 else v for k, v in weights.items()}
    model.load_weights(list(half.items()))
    mx.eval(model.parameters())
    return model


def fill(model, ids, cache):
    """Prefills `ids` [batch][tokens] in chunks; returns the logits of the last position."""
    tokens = mx.array(ids)
    for start in range(0, tokens.shape[1], PREFILL_STEP):
        logits = model(tokens[:, start : start + PREFILL_STEP], cache=cache)[:, -1]
        mx.eval(logits, [layer.state for layer in cache])
    return logits


def fill_with_noise(cache, model, batch, tokens):
    """A cache as if `tokens` had been read: computing them here would take minutes, and the time of a
    step does not depend on their values."""
    heads, head_dim = model.args.num_key_value_heads, model.args.hidden_size // model.args.num_attention_heads
    for layer in cache:
        shape = (batch, heads, tokens, head_dim)
        layer.update_and_fetch(mx.random.normal(shape, mx.float16), mx.random.normal(shape, mx.float16))
        mx.eval(layer.state)


def decode(model, batch):
    cache = make_prompt_cache(model)
    fill_with_noise(cache, model, batch, cases.CONTEXT)
    ids = cases.prompt(STEPS * batch)

    def work():
        for step in range(STEPS):
            row = ids[step * batch : (step + 1) * batch]
            mx.eval(model(mx.array(row)[:, None], cache=cache))

    return cases.timed(STEPS * batch, work)


def prefill(model, tokens):
    ids, cache = [cases.prompt(tokens)], make_prompt_cache(model)
    return cases.timed(tokens, lambda: fill(model, ids, cache))


def main():
    options = cases.arguments(__doc__)  # --threads has no counterpart: MLX's CPU device has one thread
    mx.set_default_device(mx.cpu)
    model = load(options.model)
    cases.run_all(
        f"mlx-lm (mlx {mx.__version__})",
        functools.partial(decode, model),
        functools.partial(prefill, model),
        options,
    )


if __name__ == "__main__":
    main()

"""Writes tests/golden/model: tiny random checkpoints and what their tensors must read as.

Every folder holds a model with random weights in one format; expected.json beside it lists, for each
tensor, two rows and the sum of all values, dequantized by MLX (safetensors) or by gguf-py (GGUF),
never by Bodega. Run it with a Python that has mlx, numpy and gguf:

    python scripts/golden/model_fixtures.py
"""

import json
import pathlib

import gguf
import mlx.core as mx
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "model"
HIDDEN, HEADS, KV_HEADS, HEAD_DIM, INNER, VOCAB = 64, 4, 2, 16, 64, 64


def base_config(architecture="llama", layers=1, **more):
    names = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}
    return {
        "architectures": [names[architecture] + "ForCausalLM"],
        "model_type": architecture,
        "hidden_size": HIDDEN,
        "num_hidden_layers": layers,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "intermediate_size": INNER,
        "vocab_size": VOCAB,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "eos_token_id": 2,
        **more,
    }


def random_weights(config, seed):
    """fp32 arrays under Hugging Face's names."""
    rng = np.random.default_rng(seed)
    shapes = {"model.embed_tokens.weight": (VOCAB, HIDDEN), "model.norm.weight": (HIDDEN,)}
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (VOCAB, HIDDEN)
    for layer in range(config["num_hidden_layers"]):
        p = f"model.layers.{layer}."
        for name, rows in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS)):
            shapes[p + f"self_attn.{name}_proj.weight"] = (rows * HEAD_DIM, HIDDEN)
            if config["model_type"] == "qwen2":
                shapes[p + f"self_attn.{name}_proj.bias"] = (rows * HEAD_DIM,)
        if config["model_type"] == "qwen3":
            shapes[p + "self_attn.q_norm.weight"] = (HEAD_DIM,)
            shapes[p + "self_attn.k_norm.weight"] = (HEAD_DIM,)
        shapes[p + "self_attn.o_proj.weight"] = (HIDDEN, HEADS * HEAD_DIM)
        shapes[p + "mlp.gate_proj.weight"] = (INNER, HIDDEN)
        shapes[p + "mlp.up_proj.weight"] = (INNER, HIDDEN)
        shapes[p + "mlp.down_proj.weight"] = (HIDDEN, INNER)
        shapes[p + "input_layernorm.weight"] = (HIDDEN,)
        shapes[p + "post_attention_layernorm.weight"] = (HIDDEN,)
    return {
        name: (rng.standard_normal(shape) * 0.3 + (1.0 if "norm" in name else 0.0)).astype(np.float32)
        for name, shape in shapes.items()
    }


def expected_tensor(values, form):
    values = np.array(values, dtype=np.float32)
    result = {"shape": list(values.shape), "format": form, "sum": float(values.astype(np.float64).sum())}
    if values.ndim == 1:
        result["values"] = [float(v) for v in values]
    else:
        result["rows"] = {str(row): [float(v) for v in values[row]] for row in (1, len(values) - 3)}
    return result


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


def write_expected(path, expected):
    """One line a tensor."""
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in expected.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def write_folder(name, config, tensors, expected, shards=1):
    folder = ROOT / name
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", config)
    write_expected(folder / "expected.json", expected)
    if shards == 1:
        mx.save_safetensors(str(folder / "model.safetensors"), tensors)
        return
    names = sorted(tensors)
    weight_map = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        part = names[shard::shards]
        mx.save_safetensors(str(folder / file), {n: tensors[n] for n in part})
        weight_map.update(dict.fromkeys(part, file))
    total = sum(t.nbytes for t in tensors.values())
    write_json(
        folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": weight_map}
    )


def write_dense(name, config, dtype, form, seed, shards=1):
    tensors = {n: mx.array(v).astype(dtype) for n, v in random_weights(config, seed).items()}
    expected = {n: expected_tensor(v.astype(mx.float32), form) for n, v in tensors.items()}
    write_folder(name, config, tensors, expected, shards)


def format_name(spec):
    kind = f"affine {spec['bits']}-bit" if spec["mode"] == "affine" else spec["mode"]
    return f"{kind} g{spec['group_size']}"


def quantize(weight, spec):
    return mx.quantize(weight, group_size=spec["group_size"], bits=spec["bits"], mode=spec["mode"])


def dequantize(parts, spec):
    if spec["mode"] == "affine":
        packed, scales, biases = parts
        return mx.dequantize(
            packed,
            scales.astype(mx.float32),
            biases.astype(mx.float32),
            group_size=spec["group_size"],
            bits=spec["bits"],
        )
    return mx.dequantize(
        *parts, group_size=spec["group_size"], bits=spec["bits"], mode=spec["mode"], dtype=mx.float32
    )


def write_quantized(name, config, default, overrides, dtype, seed):
    """`overrides`: by module name, another spec or False; the config lists them as MLX does."""
    tensors, expected = {}, {}
    plain = {mx.float16: "f16", mx.bfloat16: "bf16"}[dtype]
    for tensor, values in random_weights(config, seed).items():
        module = tensor.removesuffix(".weight")
        spec = overrides.get(module, default) if values.ndim == 2 else False
        weight = mx.array(values).astype(dtype)
        if spec is False:
            tensors[tensor] = weight
            expected[tensor] = expected_tensor(weight.astype(mx.float32), plain)
            continue
        parts = quantize(weight, spec)
        for suffix, part in zip(("weight", "scales", "biases"), parts):
            tensors[f"{module}.{suffix}"] = part
        expected[tensor] = expected_tensor(dequantize(parts, spec), format_name(spec))
    quantization = dict(default)
    quantization.update(overrides)
    config = {**config, "quantization": quantization, "quantization_config": quantization}
    write_folder(name, config, tensors, expected)


def affine(bits, group_size):
    return {"group_size": group_size, "bits": bits, "mode": "affine"}


GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
}


def gguf_name(name):
    module, suffix = name.rsplit(".", 1)
    if module.startswith("model.layers."):
        _, _, layer, rest = module.split(".", 3)
        return f"blk.{layer}.{GGUF_NAMES[rest]}.{suffix}"
    return f"{GGUF_NAMES[module]}.{suffix}"


def interleave(rows, heads):
    """llama.cpp's order of q and k rows (convert_hf_to_gguf.py, LlamaModel.permute)."""
    shape = rows.shape
    return rows.reshape(heads, 2, shape[0] // heads // 2, *shape[1:]).swapaxes(1, 2).reshape(shape)


def add_gguf_metadata(writer, config):
    writer.add_name("tiny")
    writer.add_context_length(512)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(VOCAB)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    control = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    letters = [chr(33 + i) for i in range(VOCAB - len(control))]
    writer.add_token_list(control + letters)
    writer.add_token_types([3] * len(control) + [1] * len(letters))
    writer.add_token_merges(['! "', "# $"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template("{{ messages[0]['content'] }}")


def write_gguf(name, config, qtype, form, seed, rope_factors=None):
    folder = ROOT / name
    folder.mkdir(parents=True, exist_ok=True)
    architecture = config["model_type"]
    writer = gguf.GGUFWriter(str(folder / "model.gguf"), architecture)
    add_gguf_metadata(writer, config)
    expected = {}
    for tensor, values in random_weights(config, seed).items():
        kind = qtype if values.ndim == 2 else gguf.GGMLQuantizationType.F32
        data = gguf.quants.quantize(values, kind)
        read = gguf.quants.dequantize(data, kind).reshape(values.shape)
        expected[tensor] = expected_tensor(read, form if values.ndim == 2 else "f32")
        for part, heads in ((".q_proj.", HEADS), (".k_proj.", KV_HEADS)):
            if part in tensor and architecture == "llama":
                data = interleave(data, heads)
        writer.add_tensor(gguf_name(tensor), np.ascontiguousarray(data), raw_dtype=kind)
    if rope_factors is not None:
        writer.add_tensor("rope_freqs.weight", np.array(rope_factors, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    write_expected(folder / "expected.json", expected)


def main():
    write_dense("hf_f16", base_config(), mx.float16, "f16", 1)
    write_dense("hf_bf16_qwen2", base_config("qwen2", tie_word_embeddings=True), mx.bfloat16, "bf16", 2)
    write_dense("hf_sharded", base_config("qwen3"), mx.float16, "f16", 3, shards=3)
    layer = "model.layers.{}.{}".format
    write_quantized(
        "mlx_mixed",
        base_config(layers=2),
        affine(4, 64),
        {
            "model.embed_tokens": affine(8, 32),
            "lm_head": False,
            layer(0, "mlp.down_proj"): affine(6, 64),
            layer(0, "self_attn.v_proj"): affine(5, 32),
            layer(1, "mlp.down_proj"): affine(3, 64),
            layer(1, "self_attn.k_proj"): affine(2, 32),
        },
        mx.float16,
        4,
    )
    write_quantized(
        "mlx_bf16_scales", base_config(tie_word_embeddings=True), affine(4, 32), {}, mx.bfloat16, 5
    )
    for mode, bits, group in (("mxfp4", 4, 32), ("mxfp8", 8, 32), ("nvfp4", 4, 16)):
        spec = {"group_size": group, "bits": bits, "mode": mode}
        write_quantized(
            "mlx_" + mode, base_config(), spec, {"model.embed_tokens": affine(8, 32)}, mx.bfloat16, 6
        )
    types = gguf.GGMLQuantizationType
    for kind, form in (
        (types.F32, "f32"),
        (types.F16, "f16"),
        (types.BF16, "bf16"),
        (types.Q4_0, "affine 4-bit g32"),
        (types.Q4_1, "affine 4-bit g32"),
        (types.Q8_0, "affine 8-bit g32"),
    ):
        write_gguf("gguf_" + kind.name.lower(), base_config(), kind, form, 7)
    write_gguf(
        "gguf_qwen2", base_config("qwen2", tie_word_embeddings=True), types.Q8_0, "affine 8-bit g32", 8
    )
    write_gguf(
        "gguf_rope_factors",
        base_config(tie_word_embeddings=True),
        types.Q4_0,
        "affine 4-bit g32",
        9,
        rope_factors=[1.0, 1.0, 1.5, 2.0, 4.0, 8.0, 8.0, 8.0],
    )


if __name__ == "__main__":
    main()

"""Writes tests/golden/logits: what models must compute, by mlx-lm in fp32.

For each architecture a tiny random model (seed fixed) with the logits of two token sequences. For the
default model (SmolLM2-135M-Instruct, the GGUF file named on the command line): top logits of a few
prompts, greedy answers with their margins, and the fit to tests/golden/fidelity.txt.

    python scripts/golden/logits.py [SmolLM2-135M-Instruct.Q4_1.gguf]

Needs mlx, mlx-lm, numpy, gguf and tokenizers. On Linux, preload OpenBLAS: the BLAS in MLX's wheel is slow.
"""

import json
import pathlib
import sys

import gguf
import mlx.core as mx
import numpy as np
import tokenizers
from mlx.utils import tree_unflatten
from mlx_lm.models import llama, qwen2, qwen3
from mlx_lm.models.cache import make_prompt_cache

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
MODULES = {"llama": llama, "mistral": llama, "qwen2": qwen2, "qwen3": qwen3}
CLASSES = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}


def make_config(architecture, **more):
    return {
        "architectures": [CLASSES[architecture] + "ForCausalLM"],
        "model_type": architecture,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "intermediate_size": 96,
        "vocab_size": 128,
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "eos_token_id": 127,
        **more,
    }


def make_model(config):
    """mlx-lm's model. Its llama wants a full layer among windowed ones, so Mistral's first, which has
    a window like all others, gets it afterwards."""
    module = MODULES[config["model_type"]]
    if not config.get("sliding_window") or "layer_types" in config:
        return module.Model(module.ModelArgs.from_dict(config))
    types = ["full_attention"] + ["sliding_attention"] * (config["num_hidden_layers"] - 1)
    model = module.Model(module.ModelArgs.from_dict({**config, "layer_types": types}))
    model.model.layers[0].use_sliding = True
    return model


def random_tensors(model, seed):
    rng = np.random.default_rng(seed)
    tensors = {}
    for name, value in sorted(flatten(model.parameters())):
        if name.endswith("norm.weight"):
            numbers = 1.0 + 0.2 * rng.standard_normal(value.shape)
        elif name.endswith(".bias"):
            numbers = 0.5 * rng.standard_normal(value.shape)
        else:
            numbers = rng.standard_normal(value.shape) * 1.5 / value.shape[-1] ** 0.5
        tensors[name] = mx.array(numbers.astype(np.float32))
    return tensors


def flatten(tree, prefix=""):
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        if isinstance(value, mx.array):
            yield f"{prefix}{key}", value
        else:
            yield from flatten(value, f"{prefix}{key}.")


def logits_of(model, tokens):
    """[tokens, vocabulary], the whole sequence at once."""
    return np.array(model(mx.array(tokens)[None])[0])


def store(tensors, dtype, quantization):
    """The tensors as written to the file, and the fp32 values that a reader gets back."""
    stored, read = {}, {}
    for name, value in tensors.items():
        module = name.removesuffix(".weight")
        spec = quantization.get(module, quantization.get("default")) if value.ndim == 2 else None
        value = value.astype(dtype)
        if not spec:
            stored[name], read[name] = value, value.astype(mx.float32)
            continue
        packed, scales, biases = mx.quantize(value, **spec)
        stored.update({name: packed, module + ".scales": scales, module + ".biases": biases})
        read[name] = mx.dequantize(packed, scales.astype(mx.float32), biases.astype(mx.float32), **spec)
    return stored, read


def write_tiny(name, config, dtype, seed, quantization=None):
    folder = ROOT / "logits" / name
    folder.mkdir(parents=True, exist_ok=True)
    model = make_model(config)
    quantization = quantization or {}
    stored, read = store(random_tensors(model, seed), dtype, quantization)
    model.update(tree_unflatten(list(read.items())))
    if quantization:
        rest = {k: v for k, v in quantization.items() if k != "default"}
        config = {**config, "quantization": {**quantization["default"], **rest}}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    mx.save_safetensors(str(folder / "model.safetensors"), stored)
    rng = np.random.default_rng(seed + 1000)
    sequences = []
    for length in (25, 7):
        tokens = [int(t) for t in rng.integers(0, config["vocab_size"], length)]
        logits = logits_of(model, tokens)
        sequences.append({"tokens": tokens, "logits": [[float(f"{v:.7g}") for v in row] for row in logits]})
    (folder / "golden.json").write_text(json.dumps({"sequences": sequences}) + "\n")
    print(name, "logits deviate by", float(np.std(sequences[0]["logits"])))


def write_all_tiny():
    four = {"group_size": 32, "bits": 4}
    write_tiny("llama2", make_config("llama"), mx.float32, 1)
    scaling = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    }
    write_tiny(
        "llama3",
        make_config("llama", rope_theta=500000.0, rope_scaling=scaling, tie_word_embeddings=True),
        mx.float16,
        2,
        {"default": four},
    )
    write_tiny(
        "mistral",
        make_config("mistral", sliding_window=8, num_hidden_layers=3),
        mx.float16,
        3,
        {"default": four},
    )
    write_tiny(
        "mixed_window",
        make_config(
            "llama",
            sliding_window=8,
            tie_word_embeddings=True,
            layer_types=["full_attention", "sliding_attention"],
        ),
        mx.float16,
        6,
        {
            "default": {"group_size": 64, "bits": 4},
            **{f"model.layers.{layer}.mlp.down_proj": four for layer in range(2)},
        },
    )
    write_tiny("qwen2", make_config("qwen2", tie_word_embeddings=True), mx.float16, 4)
    write_tiny(
        "qwen3",
        make_config("qwen3", head_dim=32),
        mx.bfloat16,
        5,
        {
            "default": four,
            "model.embed_tokens": {"group_size": 32, "bits": 8},
            "model.layers.1.mlp.down_proj": {"group_size": 32, "bits": 6},
        },
    )


# The default model.


def read_gguf_model(path):
    arrays, metadata = mx.load(str(path), return_metadata=True)

    def number(key):
        return metadata["llama." + key].item()

    config = make_config(
        "llama",
        hidden_size=number("embedding_length"),
        num_hidden_layers=number("block_count"),
        num_attention_heads=number("attention.head_count"),
        num_key_value_heads=number("attention.head_count_kv"),
        head_dim=number("rope.dimension_count"),
        intermediate_size=number("feed_forward_length"),
        vocab_size=number("vocab_size"),
        rms_norm_eps=number("attention.layer_norm_rms_epsilon"),
        rope_theta=number("rope.freq_base"),
        tie_word_embeddings=True,
        max_position_embeddings=number("context_length"),
    )
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    weights = {}
    for name, value in arrays.items():
        module, kind = name.rsplit(".", 1)
        if kind != "weight":
            continue
        if module + ".scales" in arrays:
            scales = arrays[module + ".scales"].astype(mx.float32)
            biases = arrays[module + ".biases"].astype(mx.float32)
            bits = value.shape[-1] * 32 // (scales.shape[-1] * 32)
            value = mx.dequantize(value, scales, biases, group_size=32, bits=bits)
        part = module.rsplit(".", 1)[-1]
        if part in heads:  # the converter interleaved the halves of each head
            rows, cols = value.shape
            value = value.reshape(heads[part], rows // heads[part] // 2, 2, cols)
            value = value.swapaxes(1, 2).reshape(rows, cols)
        weights[hugging_face_name(module) + ".weight"] = value.astype(mx.float32)
    model = make_model(config)
    model.load_weights(list(weights.items()))
    return model


def hugging_face_name(module):
    names = {
        "token_embd": "model.embed_tokens",
        "output_norm": "model.norm",
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
    if not module.startswith("blk."):
        return names[module]
    _, layer, part = module.split(".")
    return f"model.layers.{layer}.{names[part]}"


def read_tokenizer(path):
    """SmolLM2's: digits one by one, then byte-level BPE."""
    fields = gguf.GGUFReader(str(path)).fields

    def strings(key):
        field = fields[key]
        return [bytes(field.parts[i]).decode() for i in field.data]

    tokens = strings("tokenizer.ggml.tokens")
    merges = [tuple(m.split(" ")) for m in strings("tokenizer.ggml.merges")]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE({t: i for i, t in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Digits(individual_digits=True),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    return tokenizer


SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
QUESTIONS = [
    "What is the capital of France?",
    "Name three primary colours.",
    "Write a haiku about the sea.",
    "What is 7 times 8?",
    "Explain gravity to a child.",
    "Translate 'good morning' into Spanish.",
    "Who wrote Hamlet?",
    "List the planets of the solar system.",
    "What does HTTP stand for?",
    "Give me a recipe for pancakes.",
    "Why is the sky blue?",
    "Write a Python function that adds two numbers.",
    "What is the largest ocean?",
    "Summarise the story of Cinderella in one sentence.",
    "How many legs does a spider have?",
    "What is photosynthesis?",
    "Tell me a joke about cats.",
    "What is the opposite of hot?",
    "In which year did the First World War begin?",
    "Count from one to ten.",
]


def chat_prompt(question):
    return (
        f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{question}<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def greedy(model, tokens, count, end):
    cache = make_prompt_cache(model)
    answer, margins, step = [], [], mx.array(tokens)[None]
    while len(answer) < count and (not answer or answer[-1] != end):
        row = np.array(model(step, cache=cache)[0, -1])
        second, first = np.sort(row)[-2:]
        answer.append(int(row.argmax()))
        margins.append(round(float(first - second), 4))
        step = mx.array([[answer[-1]]])
    return answer, margins


def top_logits(row, count=20):
    ids = np.argsort(-row, kind="stable")[:count]
    return {"ids": [int(i) for i in ids], "logits": [round(float(row[i]), 5) for i in ids]}


def fidelity(model, tokens):
    logits = logits_of(model, tokens).astype(np.float64)
    top = np.sort(logits, axis=1)
    logs = logits - top[:, -1:] - np.log(np.exp(logits - top[:, -1:]).sum(axis=1, keepdims=True))
    negative = -logs[np.arange(len(tokens) - 1), tokens[1:]]
    return {
        "tokens": tokens,
        "mean_negative_log_likelihood": float(negative.mean()),
        "negative_log_likelihood": [round(float(v), 5) for v in negative],
        "best": [int(i) for i in logits.argmax(axis=1)],
        "margin": [round(float(v), 4) for v in top[:, -1] - top[:, -2]],
    }


def write_default(path):
    model, tokenizer = read_gguf_model(path), read_tokenizer(path)
    folder = ROOT / "logits" / "smollm2-135m-instruct"
    folder.mkdir(parents=True, exist_ok=True)
    answers, prompts = [], []
    for question in QUESTIONS:
        tokens = tokenizer.encode(chat_prompt(question)).ids
        answer, margins = greedy(model, tokens, 32, end=2)
        answers.append(
            {
                "question": question,
                "tokens": tokens,
                "answer": answer,
                "margins": margins,
                "text": tokenizer.decode(answer),
            }
        )
        print(question, "->", answers[-1]["text"][:70])
    for question in QUESTIONS[:3]:
        tokens = tokenizer.encode(chat_prompt(question)).ids
        rows = logits_of(model, tokens)
        prompts.append({"tokens": tokens, "positions": [top_logits(row) for row in rows]})
    text = (ROOT / "fidelity.txt").read_text()
    result = {"prompts": prompts, "answers": answers, "fidelity": fidelity(model, tokenizer.encode(text).ids)}
    lines = [
        f"{json.dumps(key)}: "
        + (
            json.dumps(value)
            if isinstance(value, dict)
            else "[\n" + ",\n".join(json.dumps(item) for item in value) + "\n]"
        )
        for key, value in result.items()
    ]
    (folder / "golden.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(len(result["fidelity"]["tokens"]), "tokens,", result["fidelity"]["mean_negative_log_likelihood"])


if __name__ == "__main__":
    write_all_tiny()
    if len(sys.argv) > 1:
        write_default(sys.argv[1])

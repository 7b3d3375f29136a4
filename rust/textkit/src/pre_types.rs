//! How each `tokenizer.ggml.pre` cuts text into words before byte-level BPE. The patterns are those of
//! the models' own tokenizer.json files; where a GGUF name stands for several regexes they apply one
//! after the other, each on what the last one left.

const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const DIGIT: &str = r"\p{N}";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK3: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;

pub struct PreType {
    pub names: &'static [&'static str],
    pub patterns: &'static [&'static str],
    /// A word that is a token as a whole skips the merges.
    pub ignore_merges: bool,
    /// Text is brought into Unicode's composed form first.
    pub compose: bool,
}

const fn plain(names: &'static [&'static str], patterns: &'static [&'static str]) -> PreType {
    PreType { names, patterns, ignore_merges: false, compose: false }
}

static PRE_TYPES: &[PreType] = &[
    plain(&["gpt-2", "phi-2", "mpt", "olmo", "jais", "roberta-bpe"], &[GPT2]),
    plain(&["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"], &[DIGIT, GPT2]),
    plain(&["default", ""], &[r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"]),
    plain(&["falcon"], &[r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"]),
    PreType {
        names: &["llama3", "llama-v3", "llama-bpe", "falcon3"],
        patterns: &[LLAMA3],
        ignore_merges: true,
        compose: false,
    },
    plain(&["dbrx", "smaug-bpe", "chatglm-bpe", "glm4"], &[LLAMA3]),
    PreType { names: &["qwen2", "stablelm2"], patterns: &[QWEN2], ignore_merges: false, compose: true },
    plain(&["deepseek-r1-qwen", "hunyuan"], &[QWEN2]),
    PreType { names: &["qwen35"], patterns: &[QWEN35], ignore_merges: false, compose: true },
    PreType { names: &["tekken"], patterns: &[TEKKEN], ignore_merges: true, compose: false },
    plain(&["gpt-4o", "llama4"], &[GPT4O]),
    plain(&["deepseek-v3"], &[r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK3]),
    plain(&["deepseek-coder"], &[r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}"]),
];

pub fn find(name: &str) -> Option<&'static PreType> {
    PRE_TYPES.iter().find(|t| t.names.contains(&name))
}

pub fn names() -> String {
    let names: Vec<&str> = PRE_TYPES.iter().flat_map(|t| t.names).copied().filter(|n| !n.is_empty()).collect();
    names.join(", ")
}

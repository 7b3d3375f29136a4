"""The header check must see drift of every kind."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import check_textkit_header as check

CRATE = check.CRATE
HEADER = (CRATE / "include/textkit.h").read_text()
RUST = (CRATE / "src/ffi.rs").read_text()


def test_header_and_rust_agree():
    assert check.from_header(HEADER) == check.from_rust(RUST)
    assert len(check.from_header(HEADER)) > 20


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int32_t mode,", "uint32_t mode,"),
        (
            "size_t count, bool skip_special, textkit_text* out,",
            "bool skip_special, size_t count, textkit_text* out,",
        ),
        ("bool add_bos;\n  bool add_eos;", "bool add_eos;\n  bool add_bos;"),
        ("void textkit_ids_free(textkit_ids ids);", ""),
        ("bool textkit_template_mentions", "int32_t textkit_template_mentions"),
        (
            "const textkit_tokenizer* tokenizer, int32_t id, bool as_bytes",
            "textkit_tokenizer* tokenizer, int32_t id, bool as_bytes",
        ),
    ],
)
def test_drift_is_seen(old, new):
    assert old in HEADER
    assert check.from_header(HEADER.replace(old, new)) != check.from_rust(RUST)

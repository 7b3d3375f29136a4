"""tests/metal_host/translate.py turns Metal into C++, and refuses what would escape the shim's checks."""

import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("translate", ROOT / "tests/metal_host/translate.py")
translate = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(translate)

KERNEL = """#include <metal_stdlib>
using namespace metal;  // why
#pragma METAL fp contract(off)
constant constexpr int kTwo = 2;
inline float first(device const float* x, threadgroup float* y, thread float& z) { return x[0]; }
kernel void scale(constant Params& p [[buffer(0)]],
                  device const float* x [[buffer(1)]],
                  device float* out [[buffer(2)]],
                  %s) {
  threadgroup float shared[2 * kTwo];
  const float4 four = ((device const float4*)x)[0];
}
"""


def source(positions=translate.POSITIONS):
    return KERNEL % positions


def test_pointers_and_arrays_become_checked_ones():
    text, problems = translate.translate(source())
    assert problems == []
    assert "inline void scale(const Params& p,\n" in text
    assert "Ptr<const float> x,\n" in text
    assert "Ptr<float> out," in text
    assert 'const Ptr<float> shared = threadgroup_array<float>(2 * kTwo, "shared");' in text
    assert "((Ptr<const float4>)x)[0]" in text
    assert "float first(Ptr<const float> x, Ptr<float> y, float& z)" in text
    assert "[[" not in text and "metal" not in text


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("device float* out", "float device * out", "'device' is not understood"),
        ("threadgroup float shared[2 * kTwo];", "threadgroup float one;", "'threadgroup' is not understood"),
        ("[[buffer(2)]]", "[[buffer(3)]]", "buffers are numbered [0, 1, 3]"),
        ("uint lane [[thread_index_in_simdgroup]]", "uint lane [[threads_per_simdgroup]]", "do not end with"),
    ],
)
def test_what_it_does_not_know_is_an_error(before, after, problem):
    assert before in source()
    _, problems = translate.translate(source().replace(before, after))
    assert any(problem in line for line in problems), problems


def test_every_kernel_is_understood():
    kernels = sorted((ROOT / "src/ops/metal/kernels").glob("*.metal"))
    assert len(kernels) >= 5
    for kernel in kernels:
        _, problems = translate.translate(kernel.read_text(encoding="utf-8"))
        assert problems == [], kernel

"""usage: requantize.py IN.gguf OUT.gguf Q4_0|Q4_K_M|Q8_0. Uses llama.cpp's own quantizer, so that a rival
can also be measured on the format it is fastest with. Requantized weights are for speed only."""

import ctypes
import sys

import llama_cpp as ll

FORMATS = {
    "Q4_0": ll.LLAMA_FTYPE_MOSTLY_Q4_0,
    "Q4_K_M": ll.LLAMA_FTYPE_MOSTLY_Q4_K_M,
    "Q8_0": ll.LLAMA_FTYPE_MOSTLY_Q8_0,
}


def main():
    source, target, name = sys.argv[1:]
    parameters = ll.llama_model_quantize_default_params()
    parameters.ftype = FORMATS[name]
    parameters.allow_requantize = True
    if ll.llama_model_quantize(source.encode(), target.encode(), ctypes.byref(parameters)) != 0:
        sys.exit(f"llama.cpp could not write {target}")


if __name__ == "__main__":
    main()

"""Drives llama.cpp through the C batch API of llama-cpp-python: no sampling, no Python per token
beyond filling the batch, so that the engine is measured and not its binding.

Settings are the fastest we found for it on CPU: flash attention as it chooses, separate KV streams.
"""

import ctypes

import cases
import llama_cpp as ll

N_UBATCH = 512  # its own default
MAX_TOKENS = 4096


class Engine:
    def __init__(self, options):
        ll.llama_backend_init()
        quiet = ll.llama_log_callback(lambda level, text, data: None)
        ll.llama_log_set(quiet, ctypes.c_void_p(0))
        self.quiet = quiet  # C keeps the pointer
        model_parameters = ll.llama_model_default_params()
        model_parameters.n_gpu_layers = 0
        self.model = ll.llama_model_load_from_file(options.model.encode(), model_parameters)
        if not self.model:
            raise SystemExit(f"llama.cpp cannot load {options.model}")
        self.threads = options.threads
        self.batch = ll.llama_batch_init(MAX_TOKENS, 0, 1)
        self.context, self.shape = None, None

    def open_context(self, sequences, tokens_each):
        """A context sized for the case, kept between its repetitions."""
        if self.shape == (sequences, tokens_each):
            ll.llama_memory_clear(ll.llama_get_memory(self.context), True)
            return
        if self.context:
            ll.llama_free(self.context)
        parameters = ll.llama_context_default_params()
        parameters.n_ctx = sequences * tokens_each
        parameters.n_batch = max(N_UBATCH, min(parameters.n_ctx, MAX_TOKENS))
        parameters.n_ubatch = N_UBATCH
        parameters.n_seq_max = sequences
        parameters.n_threads = parameters.n_threads_batch = self.threads
        parameters.no_perf = True
        self.context = ll.llama_init_from_model(self.model, parameters)
        if not self.context:
            raise SystemExit("llama.cpp cannot make a context")
        self.shape = (sequences, tokens_each)

    def fill(self, rows):
        """rows: (token, position, sequence, wants logits)."""
        self.batch.n_tokens = len(rows)
        for i, (token, position, sequence, logits) in enumerate(rows):
            self.batch.token[i] = token
            self.batch.pos[i] = position
            self.batch.n_seq_id[i] = 1
            self.batch.seq_id[i][0] = sequence
            self.batch.logits[i] = logits

    def compute(self):
        if ll.llama_decode(self.context, self.batch) != 0:
            raise SystemExit("llama_decode failed")
        ll.llama_synchronize(self.context)

    def decode(self, batch):
        self.open_context(batch, cases.CONTEXT + cases.STEPS)
        for sequence in range(batch):
            ids = cases.prompt(cases.CONTEXT, sequence)
            self.fill([(token, i, sequence, i == len(ids) - 1) for i, token in enumerate(ids)])
            self.compute()
        ids = cases.prompt(cases.STEPS * batch)
        steps = iter(range(cases.STEPS))

        def work():
            for step in steps:
                row = ids[step * batch : (step + 1) * batch]
                self.fill([(token, cases.CONTEXT + step, s, True) for s, token in enumerate(row)])
                self.compute()

        return cases.timed(cases.STEPS * batch, work)

    def prefill(self, tokens):
        self.open_context(1, tokens)
        ids = cases.prompt(tokens)
        self.fill([(token, i, 0, i == tokens - 1) for i, token in enumerate(ids)])
        return cases.timed(tokens, self.compute)


def main():
    options = cases.arguments(__doc__)
    engine = Engine(options)
    cases.run_all(f"llama.cpp ({ll.__version__})", engine.decode, engine.prefill, options)


if __name__ == "__main__":
    main()

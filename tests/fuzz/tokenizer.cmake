bodega_fuzz(tokenizer STAGES base core text)

bodega_fuzz(grammar STAGES base core text)

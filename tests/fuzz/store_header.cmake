bodega_fuzz(store_header STAGES engine_loop)

bodega_fuzz(http_request STAGES http)

bodega_fuzz(tool_parser STAGES base text_tools LIBS Boost::json)

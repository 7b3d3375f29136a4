find_package(Boost 1.81 REQUIRED COMPONENTS json)
bodega_fuzz(api_request STAGES api LIBS Boost::json)

find_package(Boost 1.81 REQUIRED COMPONENTS json)
bodega_fuzz(config STAGES model LIBS Boost::json)

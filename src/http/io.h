#pragma once

// Inside src/http only: the concrete Asio types. One executor type for everything keeps the
// templates, and with them the build time, small.
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <chrono>

namespace bodega::http {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<asio::generic::stream_protocol, Executor>;  // TCP or Unix
using TcpAcceptor = asio::basic_socket_acceptor<asio::ip::tcp, Executor>;
using UnixAcceptor = asio::basic_socket_acceptor<asio::local::stream_protocol, Executor>;
using Timer = asio::basic_waitable_timer<Clock, asio::wait_traits<Clock>, Executor>;

}  // namespace bodega::http

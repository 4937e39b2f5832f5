#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

/// Coroutines: lazy, single owner, resumed on the loop that runs them.
///
/// Rules (g++ 12 destroys captures twice in the shapes they forbid, and dangling is easy):
/// * a coroutine is a named function or member; it is never a lambda with captures;
/// * it takes its data by value; references only to objects that outlive the scope it runs in;
/// * no capture and no aggregate that owns (Endpoint{…}) is constructed in a co_await expression;
/// * only TaskScope starts one beside another.
namespace stagger {

using Executor = boost::asio::any_io_executor;

template <class T = void>
using Task = boost::asio::awaitable<T, Executor>;

}  // namespace stagger

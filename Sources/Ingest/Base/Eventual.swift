package import NIOCore

/// A value that is available now, or later on an event loop.
package enum Eventual<Value: Sendable>: Sendable {
  case now(Value)
  case later(EventLoopFuture<Value>)
}

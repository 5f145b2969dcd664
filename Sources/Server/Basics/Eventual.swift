package import NIOCore

/// A value that is here, or comes on an event loop.
package enum Eventual<Value: Sendable>: Sendable {
  case now(Value)
  case later(EventLoopFuture<Value>)
}

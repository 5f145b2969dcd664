internal import Glibc

/// The login manager of systemd (org.freedesktop.login1), by sd-bus. libsystemd is loaded when it is first needed: weir runs
/// where it is missing, as in most containers, and its build needs no headers. Only functions without variable arguments are
/// used, which Swift can call.
struct LoginManager {
  /// Why an inhibitor cannot be taken.
  struct Unavailable: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }

    /// `result` is a negative errno.
    fileprivate init(_ step: String, _ result: CInt) {
      self.init("cannot \(step): \(String(cString: strerror(-result)))")
    }
  }

  private typealias Pointer = UnsafeMutableRawPointer
  private typealias Text = UnsafePointer<CChar>
  private typealias Open = @convention(c) (UnsafeMutablePointer<Pointer?>) -> CInt
  private typealias Unref = @convention(c) (Pointer?) -> Pointer?
  private typealias MakeCall = @convention(c) (Pointer?, UnsafeMutablePointer<Pointer?>, Text, Text, Text, Text) -> CInt
  private typealias Append = @convention(c) (Pointer?, CChar, Text) -> CInt
  private typealias Call = @convention(c) (Pointer?, Pointer?, UInt64, Pointer?, UnsafeMutablePointer<Pointer?>) -> CInt
  private typealias Read = @convention(c) (Pointer?, CChar, UnsafeMutableRawPointer) -> CInt

  private let connect: Open
  private let close: Unref
  private let makeCall: MakeCall
  private let append: Append
  private let call: Call
  private let read: Read
  private let forget: Unref

  /// In microseconds.
  private static let patience: UInt64 = 5_000_000

  init() throws(Unavailable) {
    guard let library = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL) else {
      throw Unavailable("libsystemd.so.0 is not installed")
    }
    func symbol<Function>(_ name: String, _ type: Function.Type) throws(Unavailable) -> Function {
      guard let address = dlsym(library, name) else { throw Unavailable("libsystemd.so.0 has no \(name)") }
      return unsafeBitCast(address, to: type)
    }
    connect = try symbol("sd_bus_open_system", Open.self)
    close = try symbol("sd_bus_flush_close_unref", Unref.self)
    makeCall = try symbol("sd_bus_message_new_method_call", MakeCall.self)
    append = try symbol("sd_bus_message_append_basic", Append.self)
    call = try symbol("sd_bus_call", Call.self)
    read = try symbol("sd_bus_message_read_basic", Read.self)
    forget = try symbol("sd_bus_message_unref", Unref.self)
  }

  /// Takes an inhibitor, which is held until the returned descriptor is closed. Blocks for up to `patience`.
  func inhibit(_ what: String, who: String, why: String) throws(Unavailable) -> CInt {
    var bus: Pointer?
    try Self.check(connect(&bus), "reach the system bus")
    defer { _ = close(bus) }
    let name = "org.freedesktop.login1"
    var request: Pointer?
    try Self.check(
      makeCall(bus, &request, name, "/org/freedesktop/login1", "\(name).Manager", "Inhibit"), "make a call")
    defer { _ = forget(request) }
    for text in [what, who, why, "block"] {
      try Self.check(append(request, CChar(UInt8(ascii: "s")), text), "make a call")
    }
    var reply: Pointer?
    try Self.check(call(bus, request, Self.patience, nil, &reply), "get an inhibitor of \(name)")
    defer { _ = forget(reply) }
    var descriptor: CInt = -1
    try Self.check(read(reply, CChar(UInt8(ascii: "h")), &descriptor), "read the answer of \(name)")
    // The message owns the descriptor.
    let own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    guard own >= 0 else { throw Unavailable("keep the inhibitor", -errno) }
    return own
  }

  private static func check(_ result: CInt, _ step: String) throws(Unavailable) {
    guard result >= 0 else { throw Unavailable(step, result) }
  }
}

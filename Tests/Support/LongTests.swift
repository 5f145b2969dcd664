import Glibc

/// Whether tests go on for as long, and over as many variants, as `make test-long` wants it. `make test` has one or two of each kind.
public let isLong = getenv("WEIR_TESTS").map { String(cString: $0) } == "long"

import Glibc

/// Whether tests go on for as long, and over as many variants, as `make test-long` wants it. `make test` has one or two of each kind.
public let isLong = getenv("WEIR_TESTS").map { String(cString: $0) } == "long"

/// A number that a variable of the environment tells: how much a test is to do.
package func environmentNumber(_ variable: String) -> Int? { getenv(variable).flatMap { Int(String(cString: $0)) } }

import Glibc
import NIOCore

// libFuzzer's driver with one of weir's parsers below it. WEIR_FUZZ_TARGET names the parser; WEIR_FUZZ_SEEDS a folder
// that is filled with its seeds instead. Everything else are libFuzzer's own arguments.

/// What libFuzzer calls with each input.
@_cdecl("LLVMFuzzerTestOneInput")
func fuzzOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  FuzzTarget.chosen.run(Array(UnsafeBufferPointer(start: bytes, count: count)))
  return 0
}

@_silgen_name("LLVMFuzzerRunDriver")
func runDriver(
  _ count: UnsafeMutablePointer<CInt>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
  _ one: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

if let folder = getenv("WEIR_FUZZ_SEEDS").map({ String(cString: $0) }) {
  for (number, seed) in FuzzTarget.chosen.seeds.enumerated() {
    guard let file = fopen("\(folder)/seed-\(number)", "w") else { exit(74) }
    fwrite(seed, 1, seed.count, file)
    fclose(file)
  }
  exit(0)
}
var count = CommandLine.argc
var arguments = CommandLine.unsafeArgv
exit(runDriver(&count, &arguments, fuzzOneInput))

@testable import Local
import Testing

@Suite("A setting that may change while it is in use")
struct RequestedSettingTests {
  @Test func `Each change has a number of its own, even to the same value`() {
    let setting = RequestedSetting("a")
    #expect(setting.current.value == "a" && setting.current.number == 0)
    setting.change(to: "b")
    setting.change(to: "b")
    #expect(setting.current.value == "b" && setting.current.number == 2)
  }

  @Test func `Changes from many threads are all counted`() async {
    let setting = RequestedSetting(0)
    await withTaskGroup(of: Void.self) { group in
      for task in 1...8 { group.addTask { for _ in 0..<100 { setting.change(to: task) } } }
    }
    #expect(setting.current.number == 800 && (1...8).contains(setting.current.value))
  }
}

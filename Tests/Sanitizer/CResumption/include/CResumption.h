// Nothing here is called by name: the linker puts it before swift_continuation_await.

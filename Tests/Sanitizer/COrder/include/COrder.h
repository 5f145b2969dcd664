// Nothing here is called by name: the linker puts it before functions of the runtime.

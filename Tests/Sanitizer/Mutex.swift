// Exported: each file of the module sees it, also where a lock is inlined.
@_exported public import Locks

/// In each module that locks, this name hides the one of Synchronization; Package.swift adds the file to them. It is public, as
/// what is inlined with it is.
public typealias Mutex<Value: ~Copyable> = InstrumentedMutex<Value>

package import Locks

/// In each module that locks, this name hides the one of Synchronization. Package.swift adds the file to them.
package typealias Mutex<Value: ~Copyable> = InstrumentedMutex<Value>

import Foundation

/// The bytes that a thread has asked the allocator for, by jemalloc's own count.
///
/// There is one only in a process that has jemalloc, linked or preloaded: glibc's allocator keeps no such count.
package struct AllocatedBytes {
    private let counter: UnsafePointer<UInt64>

    /// For the thread that makes it; nothing without jemalloc.
    package init?() {
        typealias Control =
            @convention(c) (
                UnsafePointer<CChar>, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int>?, UnsafeMutableRawPointer?,
                Int
            ) -> CInt
        guard let symbol = dlsym(nil, "mallctl") else { return nil }
        let control = unsafeBitCast(symbol, to: Control.self)
        var counter: UnsafePointer<UInt64>?
        var size = MemoryLayout.size(ofValue: counter)
        guard control("thread.allocatedp", &counter, &size, nil, 0) == 0, let counter else { return nil }
        self.counter = counter
    }

    /// Since the thread began, in jemalloc's size classes: 1 byte counts as 8, 33 as 48.
    package var total: UInt64 { self.counter.pointee }
}

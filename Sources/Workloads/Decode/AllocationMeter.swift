import Glibc

/// Bytes that the calling thread has allocated, as jemalloc counts them; what is freed is not taken off.
///
/// Only jemalloc tells. It is looked for in the process at run time, for the program does not link it.
package enum AllocationMeter {
    private typealias MallCtl =
        @convention(c) (
            UnsafePointer<CChar>?, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int>?, UnsafeMutableRawPointer?, Int
        ) -> CInt

    private static let control: MallCtl? = dlsym(nil, "mallctl").map { unsafeBitCast($0, to: MallCtl.self) }

    /// `nil` where another allocator is at work.
    package static var threadBytes: UInt64? {
        guard let control = self.control else { return nil }
        var bytes: UInt64 = 0
        var size = MemoryLayout<UInt64>.size
        return control("thread.allocated", &bytes, &size, nil, 0) == 0 ? bytes : nil
    }
}

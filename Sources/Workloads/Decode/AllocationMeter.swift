import Glibc

/// Bytes that the calling thread has allocated, as jemalloc counts them.
///
/// Freed bytes are not subtracted.
///
/// Only jemalloc has this count. The program does not link it, so it is looked up at run time.
package enum AllocationMeter {
    private typealias MallCtl =
        @convention(c) (
            UnsafePointer<CChar>?, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int>?, UnsafeMutableRawPointer?, Int
        ) -> CInt

    private static let control: MallCtl? = dlsym(nil, "mallctl").map { unsafeBitCast($0, to: MallCtl.self) }

    /// `nil` with any other allocator.
    package static var threadBytes: UInt64? {
        guard let control = self.control else { return nil }
        var bytes: UInt64 = 0
        var size = MemoryLayout<UInt64>.size
        return control("thread.allocated", &bytes, &size, nil, 0) == 0 ? bytes : nil
    }
}

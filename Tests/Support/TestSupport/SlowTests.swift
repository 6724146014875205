import Foundation

/// Tests that take long and seldom find anything: `make check-slow` runs them, `make test` does not.
package enum SlowTests {
    /// For `.enabled(if:)`.
    package static let areOn = ProcessInfo.processInfo.environment["CLAMOR_CHECK_SLOW"] != nil
    /// The remark on a skipped test.
    package static let reason = "slow: make check-slow runs it"
}

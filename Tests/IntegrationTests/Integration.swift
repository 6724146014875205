import Foundation
import Synchronization
import Testing

/// The built program, as a user starts it, against its own broker and against real servers.
///
/// Runs wait for real time more than they compute, so several go on side by side. The limit is for a test that hangs;
/// nothing is judged by time.
@Suite("Integration", .takes(1), .timeLimit(.minutes(20)))
enum Integration {}

/// The part of the host that a test has to itself while it runs.
struct HostShare: TestTrait, SuiteTrait, TestScoping {
    /// So many runs leave each other enough of two cores: most wait for two thirds of their time.
    static let whole = 12
    private static let gate = HostGate(HostShare.whole)
    private static let made = Atomic(0)
    /// The client that asks for the server's name would be one more than a test counts at its peer.
    private static let asksNoServer: Void = { setenv("CLAMOR_SERVER_NAME", "off", 1) }()

    let parts: Int
    private let number = Self.made.wrappingAdd(1, ordering: .relaxed).newValue

    init(_ parts: Int) { self.parts = parts }

    var isRecursive: Bool { true }

    @concurrent
    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing body: @concurrent @Sendable () async throws -> Void
    ) async throws {
        // A suite hands its trait down to its tests, and the innermost one counts.
        let own = test.traits.lazy.compactMap { $0 as? HostShare }.last
        _ = Self.asksNoServer
        guard testCase != nil, own?.number == self.number else { return try await body() }
        await Self.gate.take(self.parts)
        defer { Self.gate.giveBack(self.parts) }
        try await body()
    }
}

extension Trait where Self == HostShare {
    /// Of ``HostShare/whole`` parts.
    static func takes(_ parts: Int) -> HostShare { HostShare(parts) }
    /// Nothing else of these tests runs meanwhile.
    static var alone: HostShare { HostShare(HostShare.whole) }
}

/// First come, first served: a test that wants much is not overtaken for ever.
private final class HostGate: Sendable {
    private struct State {
        var free: Int
        var waiting: [(parts: Int, go: CheckedContinuation<Void, Never>)] = []

        mutating func next() -> CheckedContinuation<Void, Never>? {
            guard let first = self.waiting.first, first.parts <= self.free else { return nil }
            self.free -= first.parts
            return self.waiting.removeFirst().go
        }
    }

    private let state: Mutex<State>

    init(_ parts: Int) { self.state = Mutex(State(free: parts)) }

    func take(_ parts: Int) async {
        await withCheckedContinuation { go in
            self.state.withLock { $0.waiting.append((parts, go)) }
            self.wake()
        }
    }

    func giveBack(_ parts: Int) {
        self.state.withLock { $0.free += parts }
        self.wake()
    }

    private func wake() {
        while let go = self.state.withLock({ $0.next() }) { go.resume() }
    }
}

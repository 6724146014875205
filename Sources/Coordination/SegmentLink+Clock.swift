import CPosix
package import Measurement
import Synchronization

// The coordinator's clock, and whether the coordinator still answers.
extension SegmentLink {
    /// Measures the coordinator's clock, and keeps measuring until the link is closed.
    ///
    /// `corrected` is called with each new correction, in nanoseconds to add to the segment's clock.
    ///
    /// - Throws: the coordinator does not answer within the time to join.
    package func synchronize(
        _ welcome: SegmentWelcome,
        corrected: @escaping @Sendable (Int64) -> Void
    ) async throws(SegmentLinkError) {
        let isSame = welcome.clock != nil && welcome.clock == self.clock.identity
        self.state.withLock { state in
            state.isSameClock = isSame
            state.corrected = corrected
        }
        let deadline = ContinuousClock.now + self.settings.joinTimeout
        while !isSame, self.state.withLock({ $0.track.offset }) == nil {
            await self.ask()
            guard ContinuousClock.now < deadline, (try? await Task.sleep(for: Self.firstInterval)) != nil else {
                throw SegmentLinkError(description: "the coordinator's clock was not measured: it does not answer")
            }
            self.estimate(from: Self.firstExchanges)
        }
        self.state.withLock { $0.heard = clamor_monotonic_nanoseconds() }
        let asking = Task { [self] in
            while (try? await Task.sleep(for: Self.interval)) != nil {
                await self.ask()
                self.estimate(from: Self.window)
                self.watch()
            }
        }
        self.state.withLock { $0.tasks.append(asking) }
    }

    private func estimate(from count: Int) {
        let change = self.state.withLock { state -> (offset: Int64, corrected: @Sendable (Int64) -> Void)? in
            guard !state.isSameClock, state.track.pending >= count else { return nil }
            state.track.estimate()
            guard let offset = state.track.offset, let corrected = state.corrected else { return nil }
            return (offset, corrected)
        }
        if let change { change.corrected(change.offset) }
    }

    private enum Watched {
        case missed, back, gone
    }

    /// Looks whether the coordinator still answers.
    private func watch() {
        let now = clamor_monotonic_nanoseconds()
        let seen = self.state.withLock { state -> Watched? in
            let silence = now - state.heard
            if silence >= Self.patience, state.ended != nil {
                state.ended?.yield(false)
            } else if silence >= Self.patience, state.awaitsOrder {
                state.awaitsOrder = false
                return .gone
            }
            guard state.isSilent != (silence >= Self.silence) else { return nil }
            state.isSilent.toggle()
            return state.isSilent ? .missed : .back
        }
        switch seen {
        case .missed: self.notice("no word from the coordinator for 10 s; the segment goes on")
        case .back: self.notice("the coordinator is back")
        case .gone:
            self.notice("no word from the coordinator for 30 s; the segment does not wait for its order any longer")
            self.order.yield(.stop(.ordered))
        case nil: break
        }
    }

    private func ask() async { await self.send(.echo(sent: self.clock.now)) }

    /// The clock of the segment's messages, and how far it is corrected; `nil` if the kernel has no identity for it.
    package var clockRecord: ClockRecord? {
        guard let identity = self.clock.identity else { return nil }
        let (kept, isSame) = self.state.withLock { ($0.track, $0.isSameClock) }
        var track = kept
        // The last correction is wrong by what the clocks have drifted since.
        track.estimate()
        var record = ClockRecord(host: identity, realtimeOffset: self.clock.offsetNow)
        if !isSame, let offset = kept.offset {
            record.correctionSeconds = Double(offset) / 1e9
            record.errorSeconds = Double(track.error) / 1e9
            record.exchanges = track.exchanges
            record.reference = self.state.withLock(\.reference)
        }
        return record
    }

    /// The coordinator's clock minus CLOCK_MONOTONIC.
    package func commonOffset(at monotonic: Int64) -> Int64 {
        self.clock.offset(at: monotonic) &+ (self.state.withLock { $0.isSameClock ? nil : $0.track.offset } ?? 0)
    }
}

import DequeModule
import FaultInjection
import NIOCore

// `--max-rate`: links wait in turn for the gate.
extension BrokerLoop {
    func readGated(_ link: BrokerLink, now: NIODeadline) {
        guard !link.isWaitingForRate else { return }
        let available = self.waitingForRate.isEmpty ? self.gate?.available(now: now) ?? 0 : 0
        self.letThrough(link, at: available, now: now)
        guard link.backlog.readableBytes > 0 else { return }
        link.isWaitingForRate = true
        link.block(.rate)
        self.waitingForRate.append(link)
        self.behindSince = self.behindSince ?? now
    }

    /// Passes on as much of a link's input as `budget` PUBLISH packets allow.
    private func letThrough(_ link: BrokerLink, at budget: Int, now: NIODeadline) {
        var left = budget
        let bytes = link.backlog
        let count = bytes.withUnsafeReadableBytes { bytes in
            let count = link.scanner.prefix(of: bytes, budget: &left)
            self.broker.received(
                UnsafeRawBufferPointer(rebasing: bytes[..<count]),
                from: link.id,
                decoder: &link.decoder,
                now: now
            )
            return count
        }
        let isBehind = self.behindSince.map { now - $0 > .seconds(1) } ?? false
        let cost = isBehind ? Int(min(self.configuration.faults.retryStorm ?? 1, 1_000_000)) : 1
        self.gate?.take((budget - left) * cost)
        link.backlog.moveReaderIndex(forwardBy: min(count, link.backlog.readableBytes))
        if link.backlog.readableBytes == 0 { link.backlog = ByteBuffer() }
    }

    /// Distributes the gate's budget among waiting links, in turn.
    func serveWaiting(now: NIODeadline) {
        for _ in 0..<self.waitingForRate.count {
            guard let available = self.gate?.available(now: now), available > 0,
                let link = self.waitingForRate.popFirst()
            else { break }
            guard link.context != nil, link.ending == nil else { continue }
            self.letThrough(link, at: max(1, available / (self.waitingForRate.count + 1)), now: now)
            if link.ending == nil, link.backlog.readableBytes > 0 {
                self.waitingForRate.append(link)
            } else {
                link.isWaitingForRate = false
                link.unblock(.rate)
                if link.inputEnded { self.inputEnded(link) }
            }
        }
        for link in self.waitingForRate where link.context != nil { self.broker.heard(link.id, now: now) }
        if self.waitingForRate.isEmpty { self.behindSince = nil }
    }
}

package import EmbeddedBroker
import MQTTCodec
package import NIOCore
package import NIOEmbedded

/// The core of the embedded broker, as a server of virtual clients.
package final class VirtualBroker: VirtualServer {
    private final class Peer {
        let link: VirtualLink
        var decoder = PacketDecoder(role: .server)

        init(_ link: VirtualLink) { self.link = link }
    }

    private let loop: EmbeddedEventLoop
    let oracle = WireOracle()
    package private(set) var broker: Broker
    private var byConnection: [ConnectionID: Peer] = [:]
    private var armed = NIODeadline.distantFuture
    /// Events that reach the broker during a stall.
    private var held: [() -> Void] = []
    private var isStalled = false
    package private(set) var stalls: [Range<NIODeadline>] = []

    /// `p2pRoots`: topics of one level, under which messages reach single clients.
    package init(_ faults: FaultPlan, loop: EmbeddedEventLoop, p2pRoots: [String] = []) {
        self.loop = loop
        var configuration = BrokerConfiguration(port: 0, faults: faults)
        configuration.maximumPacketSize = 1 << 28
        configuration.p2pRoots = p2pRoots
        self.broker = Broker(configuration, now: loop.now)
    }

    package func books(of client: Int) -> WireOracle.Connection? { self.oracle.connection(client) }

    package func opened(_ link: VirtualLink) {
        self.toBroker {
            link.id = self.broker.connected(now: self.loop.now)
            self.byConnection[link.id] = Peer(link)
        }
    }

    package func received(_ bytes: ByteBuffer, from link: VirtualLink) {
        self.toBroker {
            guard let peer = self.byConnection[link.id], peer.link === link else { return }
            bytes.withUnsafeReadableBytes {
                self.broker.received($0, from: link.id, decoder: &peer.decoder, now: self.loop.now)
            }
            link.took(bytes.readableBytes)
        }
    }

    package func gone(_ link: VirtualLink) {
        self.toBroker {
            guard self.byConnection[link.id]?.link === link else { return }
            self.byConnection[link.id] = nil
            self.broker.closed(link.id, now: self.loop.now)
            link.close()
        }
    }

    private func toBroker(_ body: @escaping () -> Void) {
        if self.isStalled { return self.held.append(body) }
        body()
        self.act()
    }

    private func act() {
        while let action = self.broker.nextAction() {
            switch action {
            case .flush(let id), .flushNow(let id): self.flush(id)
            case .close(let id):
                self.flush(id)
                self.byConnection[id]?.link.close()
            case .reset(let id):
                self.flush(id)
                guard let peer = self.byConnection.removeValue(forKey: id) else { continue }
                self.broker.closed(id, now: self.loop.now)
                peer.link.reset()
            case .pauseReading, .resumeReading: break
            case .stall(let end): self.stall(until: end)
            }
        }
        self.arm()
    }

    private func flush(_ id: ConnectionID) {
        guard let peer = self.byConnection[id], self.broker.hasOutput(id) else { return }
        peer.link.send(self.broker.takeOutput(id))
    }

    private func stall(until end: NIODeadline) {
        let begin = self.loop.now
        self.isStalled = true
        self.loop.assumeIsolated().scheduleTask(deadline: end) {
            self.isStalled = false
            self.stalls.append(begin..<self.loop.now)
            self.broker.stalled(from: 0, to: 0, now: self.loop.now)
            let held = self.held
            self.held = []
            for body in held { self.toBroker(body) }
            self.act()
        }
    }

    private func arm() {
        let next = self.broker.nextDeadline
        guard !self.isStalled, next < self.armed else { return }
        self.armed = next
        self.loop.assumeIsolated().scheduleTask(deadline: next) {
            self.armed = .distantFuture
            guard !self.isStalled else { return }
            self.broker.advance(to: self.loop.now)
            self.act()
        }
    }
}

extension VirtualNetwork where Server == VirtualBroker {
    package var oracle: WireOracle { self.server.oracle }
    package var stalls: [Range<NIODeadline>] { self.server.stalls }
}

import LoopContext
import NIOCore
import SASL
import Synchronization
import Transport

/// Counts live objects from creation to deinitialisation, on any thread.
package final class LiveCount: Sendable {
    private let atomic = Atomic(0)

    package var value: Int { self.atomic.load(ordering: .acquiring) }
    func begin() { self.atomic.add(1, ordering: .relaxed) }
    func end() { self.atomic.subtract(1, ordering: .releasing) }
}

/// State shared by the clients of one event loop.
///
/// Each client has two timers: its connection's, and its own.
final class ClientLoop {
    static let all = LoopHomes<ClientLoop>()

    let tenants: LoopTenants<ClientCore>
    var context: LoopContext { self.tenants.context }

    let live = LiveCount()
    /// SCRAM's derived keys.
    let keys = SCRAMKeyCache()
    private var layers: [ObjectIdentifier: (layers: [any ConnectLayer], users: Int)] = [:]

    private init(_ eventLoop: any EventLoop) { self.tenants = LoopTenants(eventLoop, timersEach: 2) }

    /// The instance of this loop; must be called on the loop.
    static func of(_ eventLoop: any EventLoop) -> ClientLoop { Self.all.of(eventLoop) { ClientLoop(eventLoop) } }

    // MARK: Layers

    /// The layers for a transport, shared by all clients with the same key.
    func borrowLayers(_ transport: MQTTTransport) -> [any ConnectLayer] {
        guard let key = transport.key else { return transport.layers(self.context) }
        if let known = self.layers[key] {
            self.layers[key]?.users += 1
            return known.layers
        }
        let made = transport.layers(self.context)
        self.layers[key] = (made, 1)
        return made
    }

    func returnLayers(_ transport: MQTTTransport) {
        guard let key = transport.key, let known = self.layers[key] else { return }
        if known.users == 1 { self.layers[key] = nil } else { self.layers[key]?.users -= 1 }
    }
}

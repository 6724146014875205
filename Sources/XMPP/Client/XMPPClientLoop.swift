import LoopContext
package import NIOCore
import SASL
import Synchronization
import Transport
import XMPPCodec

/// State shared by all clients of one event loop, alive as long as any of them.
///
/// Confined to its loop. Each client has one timer.
package final class XMPPClientLoop {
    /// The settings that two clients must have in common to share a TLS context.
    struct TLSKey: Hashable {
        enum Use {
            case startTLS, direct, webSocket
        }

        let domain: String
        let use: Use
        let verifies: Bool
        let authorityFile: String?
        let certificateFile: String?
        let keyFile: String?
    }

    private static let loops = Mutex<[ObjectIdentifier: NIOLoopBound<XMPPClientLoop>]>([:])

    let context: LoopContext
    /// SCRAM's derived keys.
    let keys = SCRAMKeyCache()
    /// For what reads cut.
    let memory = XMPPReaderMemory()
    private var owner: TimerOwner?
    private var clients: [XMPPClientCore?] = []
    private var free: [Int] = []
    private var tls: [TLSKey: TLSLayer] = [:]
    private var dns: [[String]: DNSClient] = [:]

    private init(_ eventLoop: any EventLoop) {
        self.context = LoopContext(eventLoop: eventLoop)
        self.owner = self.context.timers.addOwner { [weak self] _, tag in self?.clients[Int(tag)]?.timerFired() }
    }

    /// The one of this loop, on which it is called.
    static func of(_ eventLoop: any EventLoop) -> XMPPClientLoop {
        let key = ObjectIdentifier(eventLoop)
        if let known = Self.loops.withLock({ $0[key] }) { return known.value }
        let made = NIOLoopBound(XMPPClientLoop(eventLoop), eventLoop: eventLoop)
        Self.loops.withLock { $0[key] = made }
        return made.value
    }

    /// Whether this loop has clients.
    package static func isKept(for eventLoop: any EventLoop) -> Bool {
        let key = ObjectIdentifier(eventLoop)
        return Self.loops.withLock { $0[key] != nil }
    }

    /// Clients on this loop.
    var clientCount: Int { self.clients.count - self.free.count }

    func add(_ client: XMPPClientCore) -> (index: Int, timer: TimerID) {
        guard let owner = self.owner else { preconditionFailure("set in init") }
        let index = self.free.popLast() ?? self.clients.count
        if index == self.clients.count { self.clients.append(nil) }
        self.clients[index] = client
        return (index, self.context.timers.register(owner, tag: Int32(index)))
    }

    func remove(_ index: Int, _ timer: TimerID) {
        self.clients[index] = nil
        self.free.append(index)
        self.context.timers.unregister(timer)
        guard self.clientCount == 0 else { return }
        self.context.timers.stop()
        let key = ObjectIdentifier(self.context.eventLoop)
        Self.loops.withLock { _ = $0.removeValue(forKey: key) }
    }

    /// Reading an authority's file takes milliseconds, and its certificates take megabytes, so clients share them.
    func layer(_ key: TLSKey) throws(XMPPClientError) -> TLSLayer {
        if let known = self.tls[key] { return known }
        var settings = TLSSettings()
        settings.verifies = key.verifies
        settings.authorityFile = key.authorityFile
        settings.certificateFile = key.certificateFile
        settings.keyFile = key.keyFile
        settings.xmppDomain = key.domain
        if key.use == .direct { settings.applicationProtocols = ["xmpp-client"] }
        do throws(TLSSettingsError) {
            let context = try TLSContext(settings)
            let layer = TLSLayer(
                context,
                loop: self.context,
                preamble: key.use == .startTLS ? .xmpp(domain: key.domain) : nil
            )
            self.tls[key] = layer
            return layer
        } catch {
            throw .invalid(error.description)
        }
    }

    /// Asks these name servers, or the system's if none is given.
    func dns(_ servers: [String]) throws(XMPPClientError) -> DNSClient {
        if let known = self.dns[servers] { return known }
        var addresses: [SocketAddress] = []
        for server in servers {
            guard let address = NameServers.parse(server) else {
                throw .invalid("'\(OneLine.of(server))' is no address of a name server; write it like 127.0.0.1:53")
            }
            addresses.append(address)
        }
        if servers.isEmpty { addresses = NameServers.system() }
        guard !addresses.isEmpty else {
            throw .invalid("this host has no name server configured; set the host to connect to")
        }
        let made = DNSClient(eventLoop: self.context.eventLoop, servers: addresses)
        self.dns[servers] = made
        return made
    }
}

import DataEncodings
import LoopContext
import NIOCore
import SASL
import Transport
import XMPPCodec

/// Objects that the clients of one event loop share.
///
/// Each client has one timer.
final class XMPPClientLoop {
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

    static let all = LoopHomes<XMPPClientLoop>()

    let tenants: LoopTenants<XMPPClientCore>
    var context: LoopContext { self.tenants.context }

    /// SCRAM's derived keys.
    let keys = SCRAMKeyCache()
    /// The memory for elements that reads cut.
    let memory = XMPPReaderMemory()
    private var tls: [TLSKey: TLSLayer] = [:]
    private var dns: [[String]: DNSClient] = [:]

    private init(_ eventLoop: any EventLoop) { self.tenants = LoopTenants(eventLoop, timersEach: 1) }

    /// The one of this loop, on which it is called.
    static func of(_ eventLoop: any EventLoop) -> XMPPClientLoop {
        Self.all.of(eventLoop) { XMPPClientLoop(eventLoop) }
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

import TestSupport
import Testing
import XMPP

@Suite("The address families of an XMPP client", .timeLimit(.minutes(10)))
struct AddressPreferenceTests {
    @Test(
        "a domain's server that listens on IPv4 alone is found, unless only IPv6 is allowed",
        .enabled(if: Dnsmasq.isInstalled, "\(Dnsmasq.missing)"),
        arguments: XMPPClientConfiguration.AddressPreference.allCases
    )
    func families(_ preference: XMPPClientConfiguration.AddressPreference) async throws {
        try await FakeServer.with { _, _ in
            nil
        } _: { server in
            let records = [
                "srv-host=_xmpp-client._tcp.localhost,a.x.test,\(server.port),1,1",
                "host-record=a.x.test,127.0.0.1,::1",
            ]
            try await Dnsmasq.with(records) { names in
                var configuration = server.configuration
                configuration.host = nil
                configuration.port = nil
                configuration.nameServers = ["127.0.0.1:\(names.port)"]
                configuration.addressPreference = preference
                let client = XMPPClient(configuration)
                if preference == .ipv6Only {
                    await #expect(throws: XMPPClientError.self) { try await client.connect() }
                } else {
                    let jid = try await client.connect()
                    #expect(jid.description == "juliet@localhost/balcony")
                }
                await client.disconnect()
            }
        }
    }

    @Test("an address of a family that is not allowed is not connected to")
    func missing() async throws {
        try await FakeServer.with { _, _ in
            nil
        } _: { server in
            var configuration = server.configuration
            configuration.addressPreference = .ipv6Only
            let client = XMPPClient(configuration)
            do {
                _ = try await client.connect()
                Issue.record("connected")
            } catch {
                #expect("\(error)".contains("no IPv6 address, and no other is allowed"))
            }
            await client.disconnect()
        }
    }
}

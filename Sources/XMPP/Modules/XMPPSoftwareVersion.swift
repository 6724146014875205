public import XMPPCodec

/// Tells others which program this is, and asks for theirs.
///
/// Spec: XEP-0092.
public final class XMPPSoftwareVersion: XMPPModule {
    /// A program.
    public struct Version: Hashable, Sendable {
        /// The name of the program.
        public var name: String
        /// Its version; `nil`: not told.
        public var version: String?
        /// The operating system; `nil`: not told.
        public var os: String?

        /// A program; its operating system helps attackers and is better left out.
        public init(name: String, version: String, os: String? = nil) {
            self.name = name
            self.version = version
            self.os = os
        }

        init?(_ iq: XMPPElement) {
            guard let query = iq.child("query", XMPPNamespace.version) else { return nil }
            let text = { (name: String) -> String? in
                let text = query.child(name, XMPPNamespace.version)?.text
                return text?.isEmpty ?? true ? nil : text
            }
            guard let name = text("name") else { return nil }
            self.name = name
            self.version = text("version")
            self.os = text("os")
        }
    }

    /// The way to the client.
    public let link = XMPPModuleLink()
    private let own: Version?

    /// - Parameter own: this program; `nil` refuses to tell.
    public init(_ own: Version? = nil) { self.own = own }

    /// Versions, if requests are answered.
    public var features: [String] { self.own == nil ? [] : [XMPPNamespace.version] }

    /// Makes the handler.
    public func makeHandler() -> any XMPPHandler { SoftwareVersionHandler(self.own) }

    /// Asks an entity for its program.
    ///
    /// - Parameter jid: the address; `nil` asks the own server.
    /// - Returns: its answer, unverified.
    /// - Throws: as ``XMPPClient/request(_:)``, and ``XMPPClientError/invalid(_:)`` for an answer without a name.
    public func version(of jid: JID? = nil) async throws(XMPPClientError) -> Version {
        let answer = try await self.link.request(Self.question(to: jid))
        guard let version = Version(answer) else { throw .invalid("the answer names no program") }
        return version
    }

    package static func question(to jid: JID?) -> XMPPElement {
        .iq("get", to: jid, XMPPElement("query", namespace: XMPPNamespace.version))
    }
}

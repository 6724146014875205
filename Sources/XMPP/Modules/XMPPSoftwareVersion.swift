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
            guard let name = query.nonEmptyText(of: "name") else { return nil }
            self.name = name
            self.version = query.nonEmptyText(of: "version")
            self.os = query.nonEmptyText(of: "os")
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
        let question = XMPPElement("query", namespace: XMPPNamespace.version)
        let answer = try await self.link.request(.iq("get", to: jid, question))
        guard let version = Version(answer) else { throw .invalid("the answer names no program") }
        return version
    }
}

/// Answers requests for the name and version of this program.
///
/// Spec: XEP-0092 §3.
package final class SoftwareVersionHandler: XMPPHandler {
    private let own: XMPPSoftwareVersion.Version?

    package init(_ own: XMPPSoftwareVersion.Version?) { self.own = own }

    package func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool {
        guard let own = self.own, stanza.name == "iq", stanza["type"] == "get",
            stanza.child("query", XMPPNamespace.version) != nil
        else { return false }
        var query = XMPPElement("query", namespace: XMPPNamespace.version)
        query.add("name", text: own.name)
        query.add("version", text: own.version)
        query.add("os", text: own.os)
        context.answer(stanza, with: query)
        return true
    }
}

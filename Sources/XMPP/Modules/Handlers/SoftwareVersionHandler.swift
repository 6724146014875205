package import XMPPCodec

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
        for (name, text) in [("name", own.name), ("version", own.version), ("os", own.os)] {
            if let text { query.add(XMPPElement(name, namespace: XMPPNamespace.version, text: text)) }
        }
        context.answer(stanza, with: query)
        return true
    }
}

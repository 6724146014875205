package import XMPPCodec

/// Answers requests for the time.
///
/// Spec: XEP-0202 §3.
package final class EntityTimeHandler: XMPPHandler {
    private let offset: Int?
    private let clock: () -> XMPPTimestamp

    /// - Parameters:
    ///   - offset: minutes ahead of UTC; `nil` refuses all requests.
    ///   - clock: the time now.
    package init(offset: Int? = 0, clock: @escaping () -> XMPPTimestamp = { .now }) {
        self.offset = offset
        self.clock = clock
    }

    package func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool {
        guard let offset = self.offset, stanza.name == "iq", stanza["type"] == "get",
            stanza.child("time", XMPPNamespace.time) != nil
        else { return false }
        var time = XMPPElement("time", namespace: XMPPNamespace.time)
        time.add(XMPPElement("tzo", namespace: XMPPNamespace.time, text: Self.zone(offset)))
        time.add(XMPPElement("utc", namespace: XMPPNamespace.time, text: self.clock().description))
        context.answer(stanza, with: time)
        return true
    }

    private static func zone(_ offset: Int) -> String {
        let minutes = Int64(abs(offset))
        return (offset < 0 ? "-" : "+") + XMPPTimestamp.pad(minutes / 60, 2) + ":"
            + XMPPTimestamp.pad(minutes % 60, 2)
    }
}

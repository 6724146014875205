import XMPPCodec

/// Tells the server whether the client is active.
///
/// Spec: XEP-0352 §4.
package final class ActivityHandler: XMPPHandler {
    package private(set) var state = XMPPActivity.State.active
    /// The state that the server has of this stream.
    private var told = XMPPActivity.State.active
    private var mayTell = false
    private let isOffered: (XMPPSession) -> Bool

    package init(isOffered: @escaping (XMPPSession) -> Bool = { $0.offers.contains(.clientState) }) {
        self.isOffered = isOffered
    }

    /// - Returns: whether the server knows it.
    package func set(_ state: XMPPActivity.State, in context: XMPPModuleContext?) -> Bool {
        self.state = state
        guard let context else { return false }
        return self.tell(in: context)
    }

    private func tell(in context: XMPPModuleContext) -> Bool {
        guard self.mayTell else { return false }
        guard self.told != self.state else { return true }
        let element = XMPPElement(self.state.rawValue, namespace: XMPPNamespace.clientState)
        guard (try? context.send(element)) ?? false else { return false }
        self.told = self.state
        return true
    }

    package func ready(_ session: XMPPSession, in context: XMPPModuleContext) {
        self.mayTell = self.isOffered(session)
        // §5.2: a stream begins active, a resumed one too, unless the login said otherwise.
        self.told = session.enabled.contains(.inactive) ? .inactive : .active
        _ = self.tell(in: context)
    }

    package func ended(_ end: XMPPClientEnd) { self.mayTell = false }
}

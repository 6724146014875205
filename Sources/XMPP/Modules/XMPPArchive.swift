package import NIOCore
package import XMPPCodec

/// Asks an archive of messages, page by page.
///
/// Spec: XEP-0313, XEP-0059.
package final class XMPPArchive: XMPPModule {
    package struct Query: Hashable, Sendable {
        /// `nil`: the own account's.
        package var archive: JID?
        package var with: JID?
        /// Times as XEP-0082 writes them.
        package var start: String?
        package var end: String?
        /// Messages of a page at most.
        package var max: Int
        package var after: String?
        package var before: String?

        package init(
            archive: JID? = nil,
            with: JID? = nil,
            start: String? = nil,
            end: String? = nil,
            max: Int = 50,
            after: String? = nil,
            before: String? = nil
        ) {
            self.archive = archive
            self.with = with
            self.start = start
            self.end = end
            self.max = max
            self.after = after
            self.before = before
        }
    }

    package struct Page: Hashable, Sendable {
        package struct Message: Hashable, Sendable {
            package let id: String
            package let stanza: XMPPElement
            /// When the archive got it.
            package let stamp: String?
        }

        package internal(set) var messages: [Message] = []
        /// Whether this is the last page in the direction of the query.
        package internal(set) var isComplete = false
        package internal(set) var first: String?
        package internal(set) var last: String?
        /// The total number of results, if the archive reports it.
        package internal(set) var count: Int?
    }

    private struct Open {
        let archive: JID?
        /// The maximum number of messages requested.
        let most: Int
        var page = Page()
    }

    private var open: [String: Open] = [:]
    /// Results from an archive that was not queried, and results beyond the number requested.
    package private(set) var foreign = 0

    package init() {}

    package func ask(
        _ query: Query,
        on connection: XMPPConnection,
        timeout: TimeAmount = .seconds(30),
        _ answer: @escaping (Result<Page, XMPPRequestError>) -> Void
    ) {
        let id = connection.stream.pointee.makeID()
        self.open[id] = Open(archive: query.archive, most: query.max)
        let iq = XMPPElement.iq("set", to: query.archive, Self.element(query, id))
        connection.request(iq, timeout: timeout) { result in
            guard var page = self.open.removeValue(forKey: id)?.page else { return answer(.failure(.connectionLost)) }
            switch result {
            case .success(let iq):
                let fin = iq.child("fin", XMPPNamespace.mam)
                let complete = fin?["complete"]
                page.isComplete = complete == "true" || complete == "1"
                let set = fin?.child("set", XMPPNamespace.rsm)
                page.first = set?.child("first")?.text
                page.last = set?.child("last")?.text
                page.count = set?.child("count").flatMap { Int($0.text) }
                answer(.success(page))
            case .failure(let error): answer(.failure(error))
            }
        }
    }

    private static func element(_ query: Query, _ id: String) -> XMPPElement {
        var form = XMPPElement("x", namespace: XMPPNamespace.dataForms, attributes: ["type": "submit"])
        let fields = [
            ("FORM_TYPE", XMPPNamespace.mam), ("with", query.with?.description), ("start", query.start),
            ("end", query.end),
        ]
        for case (let name, let value?) in fields {
            var field = XMPPElement(
                "field",
                namespace: XMPPNamespace.dataForms,
                attributes: ["var": name, "type": name == "FORM_TYPE" ? "hidden" : nil]
            )
            field.add(XMPPElement("value", namespace: XMPPNamespace.dataForms, text: value))
            form.add(field)
        }
        var set = XMPPElement("set", namespace: XMPPNamespace.rsm)
        set.add(XMPPElement("max", namespace: XMPPNamespace.rsm, text: String(query.max)))
        if let after = query.after { set.add(XMPPElement("after", namespace: XMPPNamespace.rsm, text: after)) }
        if let before = query.before { set.add(XMPPElement("before", namespace: XMPPNamespace.rsm, text: before)) }
        var element = XMPPElement("query", namespace: XMPPNamespace.mam, attributes: ["queryid": id])
        element.add(form)
        element.add(set)
        return element
    }

    package func handle(_ stanza: XMPPElement, on connection: XMPPConnection, now: NIODeadline) -> Bool {
        guard stanza.name == "message", let result = stanza.child("result", XMPPNamespace.mam) else { return false }
        let query = result["queryid"] ?? ""
        // An archive without end would fill the memory.
        guard let open = self.open[query], self.isFrom(open.archive, stanza, on: connection),
            open.page.messages.count < open.most
        else {
            self.foreign += 1
            return true
        }
        guard let forwarded = result.child("forwarded", XMPPNamespace.forward),
            let message = forwarded.child("message", XMPPNamespace.client)
        else { return true }
        self.open[query]?.page.messages.append(
            Page.Message(
                id: result["id"] ?? "",
                stanza: message,
                stamp: forwarded.child("delay", XMPPNamespace.delay)?["stamp"]
            )
        )
        return true
    }

    /// §4.2: the sender is checked, because any entity could forge archive results.
    private func isFrom(_ archive: JID?, _ stanza: XMPPElement, on connection: XMPPConnection) -> Bool {
        guard let archive else { return connection.isFromOwnAccount(stanza) }
        return stanza["from"].flatMap { try? JID(received: $0) } == archive
    }
}

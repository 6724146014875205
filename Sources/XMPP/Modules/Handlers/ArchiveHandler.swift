package import XMPPCodec

/// Asks an archive of messages, page by page.
///
/// Spec: XEP-0313, XEP-0059.
package final class ArchiveHandler: XMPPHandler {
    private struct Open {
        let archive: JID?
        /// The maximum number of messages requested.
        let most: Int
        var page = XMPPArchive.Page()
        var size = 0
    }

    /// Bytes that the messages of a page may take in memory.
    private static let mostBytes = 16 << 20

    private var open: [String: Open] = [:]

    package init() {}

    package func ask(
        _ query: XMPPArchive.Query,
        in context: XMPPModuleContext,
        _ answer: @escaping Answer<XMPPArchive.Page>
    ) {
        let id = context.makeID()
        self.open[id] = Open(archive: query.archive, most: query.max)
        let iq = XMPPElement.iq("set", to: query.archive, Self.element(query, id))
        context.request(iq) { result in
            guard let open = self.open.removeValue(forKey: id) else { return answer(.failure(.connectionLost)) }
            var page = open.page
            switch result {
            case .success where open.size > Self.mostBytes:
                answer(.failure(.invalid("the page has more than \(Self.mostBytes) bytes; ask for fewer messages")))
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

    private static func element(_ query: XMPPArchive.Query, _ id: String) -> XMPPElement {
        let form = XMPPDataForm.submit(
            XMPPNamespace.mam,
            ["with": query.with?.description, "start": query.start?.description, "end": query.end?.description]
        )
        var set = XMPPElement("set", namespace: XMPPNamespace.rsm)
        set.add("max", text: String(query.max))
        set.add("after", text: query.after)
        set.add("before", text: query.before)
        var element = XMPPElement("query", namespace: XMPPNamespace.mam, attributes: ["queryid": id])
        element.add(form.element)
        element.add(set)
        return element
    }

    package func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool {
        guard stanza.name == "message", let result = stanza.child("result", XMPPNamespace.mam) else { return false }
        let query = result["queryid"] ?? ""
        // An archive without end would fill the memory.
        guard let open = self.open[query], self.isFrom(open.archive, stanza, in: context),
            open.page.messages.count < open.most
        else { return true }
        guard let forwarded = result.child("forwarded", XMPPNamespace.forward),
            let message = forwarded.child("message", XMPPNamespace.client)
        else { return true }
        let size = open.size + stanza.estimatedSize
        self.open[query]?.size = size
        guard size <= Self.mostBytes else {
            self.open[query]?.page.messages = []
            return true
        }
        self.open[query]?.page.messages.append(
            XMPPArchive.Message(
                id: result["id"] ?? "",
                stanza: message,
                stamp: forwarded.child("delay", XMPPNamespace.delay)?["stamp"].flatMap { XMPPTimestamp($0) }
            )
        )
        return true
    }

    /// §4.2: the sender is checked, because any entity could forge archive results.
    private func isFrom(_ archive: JID?, _ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool {
        guard let archive else { return context.isFromOwnAccount(stanza) }
        return stanza.jid("from") == archive
    }
}

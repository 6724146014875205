public import XMPPCodec

/// The answer of an application to a request.
public enum XMPPAnswer: Hashable, Sendable {
    /// Success, with what was asked for, if anything was.
    case result(XMPPElement?)
    /// Failure.
    case error(StanzaError)
}

/// Lets the application answer requests of one kind.
///
/// Each request is answered in a task of its own. Too many at once are refused with `resource-constraint`, which lets
/// the others try again later. An answer that comes when the stream is lost is sent if the stream is resumed, and
/// dropped if it is not; the tasks of dropped answers are cancelled.
///
/// Spec: RFC 6120 §8.2.3.
public final class XMPPResponder: XMPPModule {
    /// The way to the client.
    public let link = XMPPModuleLink()
    /// Namespaces that the client announces because of this module.
    public let features: [String]
    private let name: String
    private let namespace: String
    private let maximum: Int
    private let respond: @Sendable (XMPPElement) async -> XMPPAnswer

    /// - Parameters:
    ///   - name: the name of the element in the requests, such as `query`.
    ///   - namespace: its namespace.
    ///   - features: to announce; `nil` is the namespace.
    ///   - maximum: requests to answer at once.
    ///   - respond: gets an `iq` of type get or set. Who has sent it is in `from`; without, it is the own account.
    public init(
        _ name: String,
        _ namespace: String,
        features: [String]? = nil,
        maximum: Int = 64,
        respond: @escaping @Sendable (XMPPElement) async -> XMPPAnswer
    ) {
        self.name = name
        self.namespace = namespace
        self.features = features ?? [namespace]
        self.maximum = maximum
        self.respond = respond
    }

    /// Makes the handler.
    public func makeHandler() -> any XMPPHandler {
        ResponderHandler(self.name, self.namespace, maximum: self.maximum) { request, number in
            Task {
                let answer = await self.respond(request)
                self.link.client?.post { core in
                    guard let handler = core.handler(of: self) as? ResponderHandler else { return }
                    handler.finished(number, answer, in: core.connection.map { XMPPModuleContext($0) })
                }
            }
        }
    }
}

/// The answer of the server at a path.
package enum LiveRoute: Sendable {
    /// A response made for each request.
    case response(@Sendable (LiveRequest) async -> LiveResponse)
    /// The stream of ``LiveServer/send(event:)``, as server-sent events.
    case events
}

/// A GET or HEAD of a path that has a route.
package struct LiveRequest: Hashable, Sendable {
    /// The path without the query.
    package var path: String
    /// The Accept header; several of them are joined.
    package var accept: String?
}

package struct LiveResponse: Hashable, Sendable {
    package var status: Int
    package var contentType: String
    package var body: [UInt8]

    package init(status: Int = 200, contentType: String, body: [UInt8]) {
        self.status = status
        self.contentType = contentType
        self.body = body
    }

    /// A text in UTF-8.
    package init(status: Int = 200, contentType: String = "text/plain; charset=utf-8", text: String) {
        self.init(status: status, contentType: contentType, body: Array(text.utf8))
    }
}

/// One server-sent event.
package struct LiveEvent: Hashable, Sendable {
    /// The type that listeners of the page wait for; without line breaks.
    package var name: String
    package var data: String
    /// Whether no other event follows it; each later client gets it.
    package var isLast: Bool

    package init(name: String, data: String, isLast: Bool = false) {
        self.name = name
        self.data = data
        self.isLast = isLast
    }
}

/// The bounds within which clients are served.
package struct LiveLimits: Hashable, Sendable {
    /// Further connections are closed at once.
    package var connections = 64
    package var targetBytes = 8 << 10
    /// Bytes of target and headers together.
    package var headBytes = 16 << 10
    /// Seconds for a whole request, its response or the time between two of them.
    package var idleSeconds = 30.0
    /// Between two comments of an event stream.
    ///
    /// A client that took nothing for two such times is closed.
    package var heartbeatSeconds = 15.0
    /// The time for the client to close after a last response, and for all clients when the server closes.
    package var lingerSeconds = 2.0
    /// The kernel's buffer of a connection.
    ///
    /// A client that does not read fills it, and holds one whole response or two events besides.
    package var sendBufferBytes = 128 << 10

    package init() {}
}

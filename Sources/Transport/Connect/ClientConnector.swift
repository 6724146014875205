package import NIOCore

/// Opens connections for the clients of one event loop.
package protocol ClientConnector: AnyObject {
    /// Connects a client, and adds the observer's handler.
    ///
    /// - Parameters:
    ///   - client: the client's number, from 0; selects target and source address.
    ///   - place: the observer's own number for the client.
    ///   - turn: how many targets behind its own the client goes to.
    ///   - deadline: the time at which an unfinished connect is cancelled; the server's answer has the same deadline.
    ///   - observer: kept alive until `connectEnded` has been called.
    func connect(client: Int, place: Int, turn: Int, deadline: NIODeadline, for observer: some ConnectObserver)
}

/// The owner of a connector's connections; all calls are made on the event loop.
package protocol ConnectObserver: AnyObject {
    /// Creates the channel's one handler when the connection is up; a ``Wire`` where the loop is a ``SocketLoop``.
    func makeHandler(_ place: Int) -> any ChannelHandler

    /// The connect is over: the handler is in the pipeline, or the wire reads its socket.
    ///
    /// Without layers this call comes before the handler's `channelActive`.
    ///
    /// Called once, possibly before `connect` returns.
    func connectEnded(_ place: Int, _ result: Result<ConnectedChannel, ConnectError>, deadline: NIODeadline)
}

extension ClientConnector {
    /// Connects with two closures instead of an observer, for callers that connect rarely.
    package func connect(
        client: Int,
        deadline: NIODeadline,
        handler: @escaping () -> any ChannelHandler,
        done: @escaping (Result<ConnectedChannel, ConnectError>) -> Void
    ) {
        let observer = ConnectClosures(handler: handler, done: done)
        self.connect(client: client, place: 0, turn: 0, deadline: deadline, for: observer)
    }
}

private final class ConnectClosures: ConnectObserver {
    private let handler: () -> any ChannelHandler
    private let done: (Result<ConnectedChannel, ConnectError>) -> Void

    init(
        handler: @escaping () -> any ChannelHandler,
        done: @escaping (Result<ConnectedChannel, ConnectError>) -> Void
    ) {
        self.handler = handler
        self.done = done
    }

    func makeHandler(_ place: Int) -> any ChannelHandler { self.handler() }

    func connectEnded(_ place: Int, _ result: Result<ConnectedChannel, ConnectError>, deadline: NIODeadline) {
        self.done(result)
    }
}

/// The duration of each step of a connect; the steps do not overlap.
package struct ConnectPhases: Hashable, Sendable {
    /// The wait for a name lookup; `nil` without one (a literal address, or a cached answer).
    package var dns: TimeAmount?
    /// From the first connect(2) to the connection, over all addresses tried; `nil` if it was not reached.
    package var tcp: TimeAmount?
    /// The TLS handshake; `nil` without TLS, or if it was not completed.
    package var tls: TimeAmount?
    /// The WebSocket's opening handshake; `nil` without one, or if it was not completed.
    package var webSocket: TimeAmount?

    package init(dns: TimeAmount? = nil, tcp: TimeAmount? = nil, tls: TimeAmount? = nil, webSocket: TimeAmount? = nil) {
        self.dns = dns
        self.tcp = tcp
        self.tls = tls
        self.webSocket = webSocket
    }
}

package struct ConnectedChannel {
    /// `nil` for a socket of a ``SocketLoop``.
    package let channel: (any Channel)?
    package let target: Target
    package internal(set) var phases: ConnectPhases
    /// No layer lies between the client's handler and the socket: the handler's bytes go unchanged over the wire.
    package let isBare: Bool
    /// The target is one of a domain's targets with direct TLS (TLS from the first byte).
    package internal(set) var isDirectTLS = false

    package init(channel: (any Channel)?, target: Target, phases: ConnectPhases, isBare: Bool = true) {
        self.channel = channel
        self.target = target
        self.phases = phases
        self.isBare = isBare
    }
}

/// A step between TCP and the client's handler: a PROXY header, TLS, a WebSocket.
///
/// A layer adds its handlers to the pipeline, does its handshake, and reports when the next layer can be added. One
/// object serves all clients of an event loop; the state of one connection is in its handlers.
package protocol ConnectLayer: AnyObject {
    /// The phase that a timeout during this step is counted as.
    var phase: ConnectError.Phase { get }

    /// Begins on a connected channel.
    ///
    /// - Parameters:
    ///   - channel: the channel; all calls are made on its event loop.
    ///   - client: the number of the client, from 0.
    ///   - target: the target of the connection.
    ///   - done: called once, on the loop, when the layer is ready or the channel has failed; possibly before this
    ///     returns.
    func begin(
        _ channel: any Channel,
        client: Int,
        target: Target,
        done: @escaping (Result<Void, ConnectError.Reason>) -> Void
    )
}

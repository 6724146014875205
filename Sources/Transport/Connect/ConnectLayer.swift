package import NIOCore

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

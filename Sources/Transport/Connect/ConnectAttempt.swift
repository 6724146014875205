import CPosix
import LoopContext
import NIOCore

final class ConnectAttempt {
    let slot: Int32
    let client: Int
    let place: Int
    let target: Target
    let layers: [any ConnectLayer]
    let deadline: NIODeadline
    let observer: any ConnectObserver

    var phases = ConnectPhases()
    /// The addresses still to try; `nil` until they are known.
    var addresses: ArraySlice<SocketAddress>?
    var connectBegun = NIODeadline.uptimeNanoseconds(0)
    /// The index of the current layer, once TCP is up.
    var layer = 0
    var channel: (any Channel)?
    /// The socket of a ``SocketLoop``.
    var own: LoopSocket?
    var isBinding = false
    /// The attempts to a name's addresses, until one of them has a connection.
    var race: RacingSockets?
    var isDone = false

    init(
        slot: Int32,
        client: Int,
        place: Int,
        target: Target,
        layers: [any ConnectLayer],
        deadline: NIODeadline,
        observer: any ConnectObserver
    ) {
        self.slot = slot
        self.client = client
        self.place = place
        self.target = target
        self.layers = layers
        self.deadline = deadline
        self.observer = observer
    }
}

extension ConnectPhases {
    mutating func note(_ phase: ConnectError.Phase, _ duration: TimeAmount) {
        switch phase {
        case .tls: self.tls = duration
        case .webSocket: self.webSocket = duration
        // These steps wait for no answer after the bytes are with the kernel.
        case .dns, .tcp, .proxy: break
        }
    }
}

extension Channel {
    /// Sets the options of a client's channel; called on its loop, before the channel reads.
    func setLoopOptions(receive: LoopReceiveAllocator) throws {
        guard let options = self.syncOptions else { preconditionFailure("socket channels have synchronous options") }
        // The bootstrap sets TCP_NODELAY itself.
        try options.setOption(.recvAllocator, value: receive)
        try options.setOption(.maxMessagesPerRead, value: 1)
        // The lowest possible marks: more than one unsent byte makes the channel unwritable, none makes it writable
        // again.
        try options.setOption(.writeBufferWaterMark, value: .init(low: 1, high: 1))
        try options.setOption(.allowRemoteHalfClosure, value: true)
        try? options.setOption(.tcpOption(.init(rawValue: clamor_unsent_option)), value: .init(clamor_most_unsent))
    }
}

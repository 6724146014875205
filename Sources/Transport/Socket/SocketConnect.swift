import CPosix
import NIOCore

#if canImport(Glibc)
import Glibc
#endif

/// A connect of a socket without a channel.
enum SocketConnect {
    enum State {
        case connecting
        case connected
        case failed(ConnectError.Reason)
    }

    /// Begins a connect, and returns its socket.
    static func begin(to target: SocketAddress, from source: SocketAddress?) throws(ConnectError.Reason) -> CInt {
        var error: CInt = 0
        var binding: CInt = 0
        let descriptor = target.withSockAddr { target, size in
            guard let source else { return clamor_begin_connect(target, nil, socklen_t(size), &error, &binding) }
            return source.withSockAddr { source, _ in
                clamor_begin_connect(target, source, socklen_t(size), &error, &binding)
            }
        }
        guard descriptor < 0 else { return descriptor }
        throw ConnectError.Reason(IOError(errnoCode: error, reason: "connect"), isBinding: binding != 0)
    }

    static func state(of descriptor: CInt, to target: SocketAddress) -> State {
        switch target.withSockAddr({ clamor_ended_connect(descriptor, $0, socklen_t($1)) }) {
        case 0: .connected
        case EALREADY: .connecting
        case let error:
            .failed(ConnectError.Reason(IOError(errnoCode: error, reason: "connect"), isBinding: false))
        }
    }
}

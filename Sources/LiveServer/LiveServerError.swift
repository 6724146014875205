/// The reason why the server does not listen.
package enum LiveServerError: Error, Hashable, Sendable, CustomStringConvertible {
    case portInUse(host: String, port: Int)
    /// Such as a port below 1024 without the privilege for it.
    case notPermitted(host: String, port: Int)
    case unknownHost(String)
    /// The address belongs to another host.
    case notLocal(host: String)
    case notAPort(Int)
    case other(host: String, port: Int, reason: String)

    package var description: String {
        switch self {
        case .portInUse(let host, let port): "port \(port) on \(host) is in use"
        case .notPermitted(let host, let port): "this user may not listen on port \(port) of \(host)"
        case .unknownHost(let host): "cannot resolve the host '\(host)'"
        case .notLocal(let host): "\(host) is no address of this host"
        case .notAPort(let port): "\(port) is no port; a port is 0 to 65535"
        case .other(let host, let port, let reason): "cannot listen on port \(port) of \(host): \(reason)"
        }
    }
}

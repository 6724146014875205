package import FaultProxy
package import Transport

package struct ProxyOptions: Hashable, Sendable, OptionsRoot {
    package static let usual = Self()

    /// The server.
    package var target = Target(host: "", port: 0)
    /// Where to listen.
    package var host = "127.0.0.1"
    /// 0: any free port, printed as the first line.
    package var port = 0
    package var faults = ProxyFaults()
    package var quiet = false

    package init() {}
}

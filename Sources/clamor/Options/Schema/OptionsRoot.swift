import Workloads

/// Options that an entry of the table can write to.
package protocol OptionsRoot: Sendable {
    /// The defaults.
    static var usual: Self { get }
}

extension LoadOptions: OptionsRoot {
    package static var usual: Self { Self(name: "", port: 0, operates: true) }
}

extension MQTTOptions: OptionsRoot {
    package static var usual: Self { Self(kind: .pubsub) }
}

extension XMPPOptions: OptionsRoot {
    package static var usual: Self { Self(kind: .message) }
}

extension DecodeOptions: OptionsRoot {
    package static var usual: Self { Self() }
}

extension CapacityOptions: OptionsRoot {
    package static var usual: Self { Self() }
}

extension BrokerOptions: OptionsRoot {
    package static var usual: Self { Self() }
}

extension ProxyOptions: OptionsRoot {
    package static var usual: Self { Self() }
}

extension CalibrateOptions: OptionsRoot {
    package static var usual: Self { Self() }
}

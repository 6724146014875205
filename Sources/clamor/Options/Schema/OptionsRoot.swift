import Workloads

/// Options that an entry of the table can write to.
protocol OptionsRoot: Sendable {
    /// The defaults.
    static var usual: Self { get }
}

extension LoadOptions: OptionsRoot {
    static var usual: Self { Self(name: "", port: 0, operates: true) }
}

extension MQTTOptions: OptionsRoot {
    static var usual: Self { Self(kind: .pubsub) }
}

extension XMPPOptions: OptionsRoot {
    static var usual: Self { Self(kind: .message) }
}

extension DecodeOptions: OptionsRoot {
    static var usual: Self { Self() }
}

extension CapacityOptions: OptionsRoot {
    static var usual: Self { Self() }
}

extension BrokerOptions: OptionsRoot {
    static var usual: Self { Self() }
}

extension ProxyOptions: OptionsRoot {
    static var usual: Self { Self() }
}

extension CalibrateOptions: OptionsRoot {
    static var usual: Self { Self() }
}

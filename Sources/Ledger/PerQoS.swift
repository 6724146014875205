/// One value for each of QoS 0, 1 and 2, without an array.
package struct PerQoS<Value> {
    private var atMostOnce: Value
    private var atLeastOnce: Value
    private var exactlyOnce: Value

    package init(repeating value: Value) {
        self.atMostOnce = value
        self.atLeastOnce = value
        self.exactlyOnce = value
    }

    /// - Parameter qos: 0...2.
    package subscript(qos: UInt8) -> Value {
        get {
            switch qos {
            case 0: self.atMostOnce
            case 1: self.atLeastOnce
            default: self.exactlyOnce
            }
        }
        _modify {
            precondition(qos <= 2, "MQTT has QoS 0, 1 and 2")
            switch qos {
            case 0: yield &self.atMostOnce
            case 1: yield &self.atLeastOnce
            default: yield &self.exactlyOnce
            }
        }
    }
}

extension PerQoS: Sendable where Value: Sendable {}
extension PerQoS: Equatable where Value: Equatable {}
extension PerQoS: Hashable where Value: Hashable {}

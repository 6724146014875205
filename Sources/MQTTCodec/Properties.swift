/// The properties of one packet, in the order of the packet.
///
/// One array of entries: an empty list costs eight bytes, order and repetition are kept, and invalid lists can be
/// written too. Two lists are equal if they have the same properties in the same order.
///
/// Spec: MQTT 5.0 §2.2.2.
public struct Properties: Hashable, Sendable, ExpressibleByArrayLiteral {
    /// One after the other.
    public var entries: [Property]

    /// No properties.
    public init() { self.entries = [] }

    /// The properties in this order.
    public init(_ entries: [Property]) { self.entries = entries }

    /// The properties in this order.
    public init(arrayLiteral elements: Property...) { self.entries = elements }

    /// Whether the list is empty.
    public var isEmpty: Bool { self.entries.isEmpty }

    /// Adds a property at the end.
    public mutating func append(_ property: Property) { self.entries.append(property) }

    /// The value of the first property `id`.
    private func first(_ id: PropertyID) -> Property.Value? { self.entries.first { $0.id == id }?.value }

    /// Replaces the first property `id`, adds it at the end, or takes all of them away.
    private mutating func set(_ id: PropertyID, _ value: Property.Value?) {
        guard let value else { return self.entries.removeAll { $0.id == id } }
        if let index = self.entries.firstIndex(where: { $0.id == id }) {
            self.entries[index].value = value
        } else {
            self.entries.append(Property(id, value))
        }
    }
}

/// One user property: any name, any value, any number of times, and the order counts (§3.3.2.3.7).
public struct UserProperty: Hashable, Sendable {
    /// Need not be the only one of this name.
    public var name: String
    /// May be empty.
    public var value: String

    /// A name and its value.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

extension Properties {
    /// All of them, in their order.
    public var userProperties: [UserProperty] {
        get {
            self.entries.compactMap {
                guard case .pair(let name, let value) = $0.value else { return nil }
                return UserProperty(name, value)
            }
        }
        set {
            self.entries.removeAll { $0.id == .userProperty }
            self.entries += newValue.map { .userProperty($0.name, $0.value) }
        }
    }

    /// All of them, for a PUBLISH that several subscriptions match (§3.3.4).
    public var subscriptionIdentifiers: [UInt32] {
        get {
            self.entries.compactMap {
                guard $0.id == .subscriptionIdentifier, case .variable(let value) = $0.value else { return nil }
                return value
            }
        }
        set {
            self.entries.removeAll { $0.id == .subscriptionIdentifier }
            self.entries += newValue.map { .subscriptionIdentifier($0) }
        }
    }
}

extension Properties {
    func byte(_ id: PropertyID) -> UInt8? {
        guard case .byte(let value)? = self.first(id) else { return nil }
        return value
    }

    mutating func setByte(_ id: PropertyID, _ value: UInt8?) { self.set(id, value.map { .byte($0) }) }

    func twoBytes(_ id: PropertyID) -> UInt16? {
        guard case .twoBytes(let value)? = self.first(id) else { return nil }
        return value
    }

    mutating func setTwoBytes(_ id: PropertyID, _ value: UInt16?) { self.set(id, value.map { .twoBytes($0) }) }

    func fourBytes(_ id: PropertyID) -> UInt32? {
        guard case .fourBytes(let value)? = self.first(id) else { return nil }
        return value
    }

    mutating func setFourBytes(_ id: PropertyID, _ value: UInt32?) { self.set(id, value.map { .fourBytes($0) }) }

    func variable(_ id: PropertyID) -> UInt32? {
        guard case .variable(let value)? = self.first(id) else { return nil }
        return value
    }

    mutating func setVariable(_ id: PropertyID, _ value: UInt32?) { self.set(id, value.map { .variable($0) }) }

    func text(_ id: PropertyID) -> String? {
        guard case .text(let value)? = self.first(id) else { return nil }
        return value
    }

    mutating func setText(_ id: PropertyID, _ value: String?) { self.set(id, value.map { .text($0) }) }

    func binary(_ id: PropertyID) -> [UInt8]? {
        guard case .binary(let value)? = self.first(id) else { return nil }
        return value
    }

    mutating func setBinary(_ id: PropertyID, _ value: [UInt8]?) { self.set(id, value.map { .binary($0) }) }
    func flag(_ id: PropertyID) -> Bool? { self.byte(id).map { $0 != 0 } }
    mutating func setFlag(_ id: PropertyID, _ value: Bool?) { self.setByte(id, value.map { $0 ? 1 : 0 }) }
}

import Synchronization

/// The keys derived from a password and a salt (RFC 5802 §3): all that the client needs, and more than a server may
/// store.
package struct SCRAMKeys: Hashable, Sendable {
    package let clientKey: [UInt8]
    package let storedKey: [UInt8]
    package let serverKey: [UInt8]

    /// Hashes `iterations` times: at 4,096 rounds, milliseconds of CPU.
    ///
    /// - Parameters:
    ///   - hash: the mechanism's.
    ///   - password: prepared, at least one byte.
    ///   - salt: at least one byte.
    ///   - iterations: at least 1.
    init(_ hash: SCRAMHash, password: [UInt8], salt: [UInt8], iterations: Int) {
        let salted = hash.saltedPassword(password, salt: salt, iterations: iterations)
        self.clientKey = hash.authenticationCode(of: Array("Client Key".utf8), key: salted)
        self.storedKey = hash.digest(self.clientKey)
        self.serverKey = hash.authenticationCode(of: Array("Server Key".utf8), key: salted)
    }
}

/// Keys that were derived before: without it a storm of logins would measure this side's PBKDF2.
///
/// Two logins at once may derive the same keys twice, since nothing is locked meanwhile. About 500 bytes an entry, the
/// password among them; the oldest entry goes first.
package final class SCRAMKeyCache: Sendable {
    /// The inputs of the keys; the user name is not one of them.
    private struct Source: Hashable {
        let hash: SCRAMHash
        let password: [UInt8]
        let salt: [UInt8]
        let iterations: Int
    }

    private struct Table {
        var keys: [Source: SCRAMKeys] = [:]
        /// The sources by age from `oldest` on, around the end.
        var order: [Source] = []
        var oldest = 0
        var derivations = 0
    }

    package let capacity: Int
    private let table = Mutex(Table())

    /// - Parameter capacity: entries at most, at least 1.
    package init(capacity: Int = 16_384) {
        precondition(capacity > 0, "a cache of nothing")
        self.capacity = capacity
    }

    /// How many times keys had to be derived.
    package var derivations: Int { self.table.withLock { $0.derivations } }
    package var count: Int { self.table.withLock { $0.keys.count } }

    func keys(_ hash: SCRAMHash, password: [UInt8], salt: [UInt8], iterations: Int) -> SCRAMKeys {
        let source = Source(hash: hash, password: password, salt: salt, iterations: iterations)
        if let known = self.table.withLock({ $0.keys[source] }) { return known }
        let keys = SCRAMKeys(hash, password: password, salt: salt, iterations: iterations)
        self.table.withLock { table in
            table.derivations += 1
            guard table.keys.updateValue(keys, forKey: source) == nil else { return }
            if table.order.count < self.capacity {
                table.order.append(source)
            } else {
                table.keys[table.order[table.oldest]] = nil
                table.order[table.oldest] = source
                table.oldest = (table.oldest + 1) % self.capacity
            }
        }
        return keys
    }
}

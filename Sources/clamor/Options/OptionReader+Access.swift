import Foundation
import SASL

extension AccessFlags {
    /// As they were typed, for the embedded broker's own command line.
    var arguments: [String] {
        (self.users.map { ["--users", $0] } ?? []) + (self.allowAnonymous ? ["--allow-anonymous"] : [])
            + (self.auth.map { ["--auth", $0] } ?? [])
    }
}

extension OptionReader {
    mutating func access(_ flags: AccessFlags, prefix: String) -> BrokerAccessOptions {
        var options = BrokerAccessOptions()
        options.users = flags.users.flatMap {
            self.users($0, flag: "\(prefix)--users", areProven: flags.auth != nil)
        }
        options.allowsAnonymous = flags.allowAnonymous
        if let word = flags.auth {
            options.scram = SCRAMHash(word: word)
            if options.scram == nil {
                self.report("\(prefix)--auth", "'\(word)' is not one of scram-sha-256, scram-sha-1")
            }
            if flags.allowAnonymous {
                self.report(
                    "\(prefix)--allow-anonymous",
                    "--auth lets nobody in without a user; leave one of the two out"
                )
            }
        }
        if flags.users == nil {
            if flags.allowAnonymous {
                self.report(
                    "\(prefix)--allow-anonymous",
                    "everybody may connect as it is; add --users, or leave it out"
                )
            }
            if flags.auth != nil { self.report("\(prefix)--auth", "is about users, and there are none; add --users") }
        }
        return options
    }

    // `areProven`: by SCRAM, which takes what SASLprep takes (RFC 5802 §5.1).
    private mutating func users(_ path: String, flag: String, areProven: Bool) -> [String: [UInt8]]? {
        guard let bytes = self.regularFile(path, flag: flag) else { return nil }
        var users: [String: [UInt8]] = [:]
        for (index, line) in bytes.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
            let line = line.last == 0x0D ? line.dropLast() : line
            if line.isEmpty { continue }
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
                let name = String(validating: line[..<colon], as: UTF8.self)
            else {
                // Not echoed: it may be a password.
                self.report(flag, "line \(index + 1) of \(path) is not NAME:PASSWORD")
                return nil
            }
            let password = Array(line[(colon + 1)...])
            if areProven, !Self.isProvable(name, password) {
                self.report(
                    flag,
                    "line \(index + 1) of \(path) has a name or a password that SCRAM cannot use; change it"
                )
                return nil
            }
            if users.updateValue(password, forKey: name) != nil {
                self.report(flag, "line \(index + 1) of \(path) has the name '\(name)' again; leave one of the two out")
                return nil
            }
        }
        if users.isEmpty { self.report(flag, "\(path) holds no users; write them like NAME:PASSWORD, one a line") }
        return users
    }

    /// The name goes over the wire as it was prepared, and has to be found again.
    private static func isProvable(_ name: String, _ password: [UInt8]) -> Bool {
        guard let prepared = try? SASLPrep.prepare(name), prepared == Array(name.utf8),
            let text = String(validating: password, as: UTF8.self), let secret = try? SASLPrep.prepare(text)
        else { return false }
        return !secret.isEmpty
    }

    /// A pipe could be read once, and the embedded broker, a process of its own, reads the file again.
    private mutating func regularFile(_ path: String, flag: String) -> [UInt8]? {
        var isDirectory = ObjCBool(false)
        let attributes = try? FileManager.default.attributesOfItem(
            atPath: URL(filePath: path).resolvingSymlinksInPath().path
        )
        if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory),
            attributes?[.type] as? FileAttributeType != .typeRegular
        {
            self.report(flag, "\(path) is no regular file; write the users into one")
            return nil
        }
        return self.contents(of: path, flag: flag)
    }
}

import Foundation

// One file, and those that it includes.
extension ScenarioReader {
    /// The most files of one run.
    private static let mostFiles = 100

    /// Loads the files and joins their contents, by top-level key.
    ///
    /// `chain`: the numbers of the files that include each other down to this one.
    mutating func load(_ text: String, path: String, chain: [Int] = []) -> [String: ScenarioValue]? {
        let file = self.files.count
        self.files.append(path)
        let root: ScenarioValue
        do throws(ScenarioProblem) {
            root = try ScenarioValue(yaml: text, file: file)
        } catch {
            return self.reported(error.place, error.text)
        }
        let remedy = "write keys such as target:, duration: and groups:"
        guard let entries = self.mapping(root, "the file", remedy) else { return nil }
        var values = self.values(entries, Self.topKeys)
        if let vars = values.removeValue(forKey: "vars") { self.readDefaults(vars) }
        if let include = values.removeValue(forKey: "include") {
            for value in self.paths(include) { self.include(value, into: &values, chain: chain + [file]) }
        }
        return values
    }

    /// `vars: { RATE: 5000/s }`.
    private mutating func readDefaults(_ value: ScenarioValue) {
        for entry in self.mapping(value, "vars", "write names and values, such as { RATE: 5000/s }") ?? [] {
            guard ScenarioVariables.isName(entry.key) else {
                self.report(entry.place, "vars: '\(entry.key)' is no name; use letters, digits and _")
                continue
            }
            guard let text = self.text(self.resolved(entry.value), of: "vars.\(entry.key)") else { continue }
            self.variables.add(entry.key, text)
        }
    }

    private mutating func paths(_ value: ScenarioValue) -> [ScenarioValue] {
        switch value.content {
        case .list(let values): return values
        case .text: return [value]
        case .nothing, .mapping:
            self.report(value.place, "include is \(value.kind); name a file, or a list of them")
            return []
        }
    }

    private mutating func include(_ value: ScenarioValue, into values: inout [String: ScenarioValue], chain: [Int]) {
        guard let name = self.text(self.resolved(value), of: "include"), let own = chain.last else { return }
        let folder = URL(filePath: self.files[own]).deletingLastPathComponent()
        let path =
            name.hasPrefix("/") || self.files[own].firstIndex(of: "/") == nil ? name : Self.path(name, in: folder)
        if let first = chain.firstIndex(where: { Self.identity(self.files[$0]) == Self.identity(path) }) {
            let circle = (chain[first...].map { self.files[$0] } + [path]).joined(separator: " includes ")
            return self.report(value.place, "include: \(circle); leave one of them out")
        }
        // Several may include it: it counts once, where it is met first.
        if self.files.contains(where: { Self.identity($0) == Self.identity(path) }) { return }
        guard self.files.count < Self.mostFiles else {
            return self.report(value.place, "include: these are over \(Self.mostFiles) files; include fewer")
        }
        guard let data = try? Data(contentsOf: URL(filePath: path)) else {
            return self.report(value.place, "include: cannot read \(path); give its path as seen from this file")
        }
        guard let text = String(validating: data, as: UTF8.self) else {
            return self.report(value.place, "include: \(path) is not text in UTF-8; save it as that")
        }
        guard let others = self.load(text, path: path, chain: chain) else { return }
        self.merge(others, into: &values)
    }

    /// Whether problems may show the contents of a file.
    ///
    /// One outside the directory of the scenario may be any file of this host, such as one with passwords.
    func mayQuote(_ file: Int) -> Bool {
        guard file > 0, file < self.files.count else { return true }
        let folder = URL(filePath: Self.identity(self.files[0])).deletingLastPathComponent().pathComponents
        return URL(filePath: Self.identity(self.files[file])).pathComponents.starts(with: folder)
    }

    /// The identity of a file, independent of its path's spelling.
    private static func identity(_ path: String) -> String {
        URL(filePath: path).standardizedFileURL.resolvingSymlinksInPath().path
    }

    private static func path(_ name: String, in folder: URL) -> String {
        let path = folder.appending(path: name).path(percentEncoded: false)
        return path.hasPrefix("./") ? String(path.dropFirst(2)) : path
    }

    /// Joins the groups, templates and thresholds of all files; for other keys the file overrides the files that it
    /// includes.
    private mutating func merge(_ others: [String: ScenarioValue], into values: inout [String: ScenarioValue]) {
        for (key, other) in others {
            guard let own = values[key] else {
                values[key] = other
                continue
            }
            switch (key, own.content, other.content) {
            case ("groups", .mapping(let mine), .mapping(let theirs)),
                ("templates", .mapping(let mine), .mapping(let theirs)):
                for entry in mine {
                    guard let twin = theirs.first(where: { $0.key == entry.key }) else { continue }
                    let path = self.files[twin.place.file]
                    self.report(entry.place, "'\(entry.key)' is defined in \(path) too; rename one of them")
                }
                let names = Set(mine.map(\.key))
                let content = theirs.filter { !names.contains($0.key) } + mine
                values[key] = ScenarioValue(place: own.place, content: .mapping(content))
            case ("thresholds", .list(let mine), .list(let theirs)):
                values[key] = ScenarioValue(place: own.place, content: .list(theirs + mine))
            default: break
            }
        }
    }
}
